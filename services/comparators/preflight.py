"""Before a replica joins: is Kafka there, and does it have the run's topics?"""

import time
from typing import Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from contracts.connection import Connection
from contracts.topics import Topic, qualified
from services.common.errors import ServiceError
from services.comparators.stop import Stop

START_DEADLINE_S: Final = 30.0
"""A broker that is being restarted is back within it; one that is not there is reported after it."""
ATTEMPT_S: Final = 1.0
RETRY_S: Final = 0.2
NEEDED: Final = (Topic.PAYMENTS_REQUESTED, Topic.PAYMENTS_SETTLED, Topic.DEAD_LETTERS, Topic.PROGRESS)


def check(connection: Connection, payment_partitions: int, stop: Stop, *, deadline_s: float = START_DEADLINE_S) -> None:
    """Return once Kafka answers and has every topic, or when asked to stop.

    payment_partitions: expected of payments.requested; 0: whatever it has.
    Raises ServiceError after `deadline_s` seconds, saying what is missing.
    """
    admin = AdminClient(connection.librdkafka() | {"log_level": 0})  # the user gets one line, at the deadline
    deadline = time.monotonic() + deadline_s
    while (problem := _problem(admin, connection, payment_partitions)) and not stop.requested:
        if time.monotonic() >= deadline:
            raise ServiceError(f"{problem} (waited {deadline_s:.0f} s)")
        time.sleep(RETRY_S)  # nothing tells when a broker comes up or a topic is made


def _problem(admin: AdminClient, connection: Connection, payment_partitions: int) -> str | None:
    where = connection.bootstrap_servers
    try:
        found = {name: len(topic.partitions) for name, topic in admin.list_topics(timeout=ATTEMPT_S).topics.items()}
    except KafkaException as away:
        return (
            f"Kafka cannot be reached at {where} ({away.args[0].str()}); "
            "start it, or correct TAILPACK_BOOTSTRAP_SERVERS and TAILPACK_CLIENT_PROPERTIES"
        )
    for name in (qualified(connection.namespace, topic) for topic in NEEDED):
        if name not in found:
            return f"topic {name} is not on {where}; create the run's topics first, or correct TAILPACK_NAMESPACE"
    requested = qualified(connection.namespace, Topic.PAYMENTS_REQUESTED)
    if payment_partitions not in {0, found[requested]}:
        return (
            f"topic {requested} has {found[requested]} partitions, TAILPACK_PAYMENT_PARTITIONS says "
            f"{payment_partitions}; let them agree"
        )
    return None
