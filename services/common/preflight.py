"""Before a process starts to work: is the broker there, and does it have the topics that are needed?"""

import asyncio
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import KafkaError

from contracts.connection import Connection
from contracts.logs import quiet_aiokafka
from contracts.topics import Topic
from services.common.records import ServiceError

PAUSE_S: Final = 0.25
LARGEST: Final = "max.message.bytes"
DEFAULT_LARGEST: Final = 1_048_576


async def check(
    connection: Connection,
    topics: Mapping[str, int],
    deadline_s: float,
    stopped: Callable[[], bool] = lambda: False,
    may_grow: Collection[str] = (),
) -> None:
    """Return when every topic exists with its number of partitions (0: any number), or when `stopped`.

    may_grow: topics that may have more partitions than that, because they were grown while the pipeline ran.

    A broker that is still starting and topics that are still being made are waited for.
    Raises ServiceError at the deadline, saying which of the two is missing.
    """
    deadline = time.monotonic() + deadline_s
    with quiet_aiokafka():
        while (problem := await _problem(connection, topics, may_grow)) and not stopped():
            if time.monotonic() >= deadline:
                raise ServiceError(f"{problem} (waited {deadline_s:.0f} s)")
            await asyncio.sleep(PAUSE_S)  # nothing tells when a broker comes up or a topic is made


async def _problem(connection: Connection, topics: Mapping[str, int], may_grow: Collection[str]) -> str | None:
    where = connection.bootstrap_servers
    admin = AIOKafkaAdminClient(**connection.aiokafka(), request_timeout_ms=5000)
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
    return mismatch(found, topics, may_grow, where)


def mismatch(found: Mapping[str, int], topics: Mapping[str, int], may_grow: Collection[str], where: str) -> str | None:
    """Return what is wrong with the topics that were found, None where nothing is. Topic → number of partitions."""
    for topic, partitions in topics.items():
        if topic not in found:
            return (
                f"topic {topic} does not exist on {where}; create the run's topics first, or correct TAILPACK_NAMESPACE"
            )
        if topic in may_grow and found[topic] > partitions:
            continue
        if partitions not in {0, found[topic]}:
            scaled = topic.endswith(Topic.PAYMENTS_REQUESTED)
            return (
                f"topic {topic} on {where} has {found[topic]} partitions where {partitions} are expected; "
                f"correct TAILPACK_{'PAYMENT' if scaled else 'PIPELINE'}_PARTITIONS, or use a fresh namespace"
            )
    return None


async def largest_record(connection: Connection, topics: Iterable[str]) -> int:
    """Return the bytes of the largest record that all `topics` take; Kafka's default where we may not ask."""
    admin = AIOKafkaAdminClient(**connection.aiokafka(), request_timeout_ms=5000)
    asked = [ConfigResource(ConfigResourceType.TOPIC, topic, {LARGEST: None}) for topic in topics]
    with quiet_aiokafka():
        try:
            await admin.start()
            answers = await admin.describe_configs(asked)
        except (KafkaError, OSError):
            return DEFAULT_LARGEST
        finally:
            await admin.close()
    entries = [entry for answer in answers for resource in answer.resources for entry in resource[4]]
    return min((int(entry[1]) for entry in entries if entry[0] == LARGEST), default=DEFAULT_LARGEST)
