"""The autoscaler's Kafka clients: the settings they share, and the check before it takes a group over.

The check comes before anything is written, so an autoscaler that cannot run neither fences the one that runs nor has a
broker create topics.
"""

import logging
from typing import Any, Final

from confluent_kafka import ConsumerGroupType, KafkaException
from confluent_kafka.admin import AdminClient

from contracts.connection import Connection
from contracts.plan import ASSIGNOR
from contracts.preflight import PreflightError, TopicNeed, check_topics
from contracts.topics import CONTROL, ScaledGroup, qualified

DEADLINE_S: Final = 10.0
"""For brokers that are just starting, and for topics that were created a moment ago."""
ASK_S: Final = 2.0
_log = logging.getLogger("autoscaler.librdkafka")
_log.addHandler(logging.NullHandler())
_log.propagate = False


def client_config(connection: Connection, **settings: Any) -> dict[str, Any]:
    """Return the connection's configuration with `settings` (property names with _ for .).

    librdkafka's own log goes to the logger "autoscaler.librdkafka", silent without a handler: what matters arrives as
    an error of a call, and is logged once, in our words.
    """
    named = {name.replace("_", "."): value for name, value in settings.items()}
    return connection.librdkafka() | {"logger": _log} | named


def reader_config(connection: Connection, **settings: Any) -> dict[str, Any]:
    """Return a configuration for reading single partitions without joining a group."""
    unused_group = qualified(connection.namespace, "autoscaler.reader")  # librdkafka demands a name
    return client_config(
        connection,
        group_id=unused_group,
        enable_auto_commit=False,
        enable_partition_eof=True,
        auto_offset_reset="earliest",
        **settings,
    )


def check(connection: Connection, scaled: ScaledGroup, *, follows_plans: bool, deadline_s: float = DEADLINE_S) -> None:
    """Return when Kafka and the topics are there, within `deadline_s`. Raises PreflightError.

    follows_plans: a group of other members than PlanConsumers is refused.
    """
    needed = {scaled.topic_in(connection.namespace): TopicNeed(remedy="create it, or correct topic")}
    for one in CONTROL:
        needed[qualified(connection.namespace, one)] = TopicNeed(remedy="create it with tailpack topics create")
    check_topics(connection, needed, deadline_s)
    if follows_plans:
        _check_group(connection, scaled.group_in(connection.namespace))


def _check_group(connection: Connection, group: str) -> None:
    """Refuse a group whose members place their partitions themselves; without the right to ask, accept it."""
    admin = AdminClient(client_config(connection))
    try:
        found = admin.describe_consumer_groups([group], request_timeout=ASK_S)[group].result(2 * ASK_S)
    except (KafkaException, TimeoutError):
        return
    other = "consumer" if found.type is ConsumerGroupType.CONSUMER else found.partition_assignor
    if found.members and other not in ("", ASSIGNOR):  # empty while the group rebalances
        raise PreflightError(
            f"the group {group} follows no plans: its {len(found.members)} members are plain Kafka clients "
            f"(assignor {other}); stop them (docs/tutorials/own-consumer.md), or name another group"
        )
