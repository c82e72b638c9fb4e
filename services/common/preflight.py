"""Before Faust starts: is the broker there, and does it have the topics this service needs?"""

import asyncio
import logging
import time
from collections.abc import Mapping
from typing import Final

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError

from contracts.connection import Connection
from services.common.errors import ServiceError
from services.common.security import aiokafka_options

PAUSE_S: Final = 0.25


async def check(connection: Connection, topics: Mapping[str, int], deadline_s: float) -> None:
    """Return when every topic exists with its number of partitions.

    A broker that is still starting and topics that are still being made are waited for.
    Raises ServiceError at the deadline, saying which of the two is missing.
    """
    deadline = time.monotonic() + deadline_s
    client_log = logging.getLogger("aiokafka")
    level = client_log.level
    client_log.setLevel(logging.CRITICAL)  # the user gets one line, at the deadline
    try:
        while problem := await _problem(connection, topics):
            if time.monotonic() >= deadline:
                raise ServiceError(f"{problem} (waited {deadline_s:.0f} s)")
            await asyncio.sleep(PAUSE_S)  # nothing tells when a broker comes up or a topic is made
    finally:
        client_log.setLevel(level)


async def _problem(connection: Connection, topics: Mapping[str, int]) -> str | None:
    where = connection.bootstrap_servers
    admin = AIOKafkaAdminClient(**aiokafka_options(connection), request_timeout_ms=5000)
    try:
        await admin.start()
        described = await admin.describe_topics()
    except (KafkaError, OSError) as away:
        return (
            f"Kafka cannot be reached at {where} ({type(away).__name__}); "
            "start it, or correct TAILPACK_BOOTSTRAP_SERVERS and TAILPACK_CLIENT_PROPERTIES"
        )
    finally:
        await admin.close()
    found = {topic["topic"]: len(topic["partitions"]) for topic in described}
    for topic, partitions in topics.items():
        if topic not in found:
            return (
                f"topic {topic} does not exist on {where}; create the run's topics first, or correct TAILPACK_NAMESPACE"
            )
        if found[topic] != partitions:
            return (
                f"topic {topic} on {where} has {found[topic]} partitions where {partitions} are expected; "
                "correct TAILPACK_PAYMENT_PARTITIONS, or use a fresh namespace"
            )
    return None
