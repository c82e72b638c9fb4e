"""The check before the autoscaler takes over a group.

It writes nothing. So an autoscaler that fails the check does not fence the running autoscaler, and no broker
creates a topic because of it.
"""

import logging
from typing import Any, Final

from confluent_kafka import ConsumerGroupType, KafkaException
from confluent_kafka.admin import AdminClient

from contracts.connection import Connection
from contracts.plan import ASSIGNOR
from contracts.preflight import PreflightError, TopicNeed, check_topics, client_config
from contracts.topics import CONTROL, ScaledGroup, Topic, qualified

log = logging.getLogger("autoscaler")
DEADLINE_S: Final = 10.0
"""Longest wait for brokers that are starting and for topics that were just created, seconds."""
DESCRIBE_TIMEOUT_S: Final = 2.0
OBSERVER_S: Final = 3.0
"""Longest wait of an autoscaler that only observes for the answer whether a topic exists."""
CONTROL_NEED: Final = TopicNeed(remedy="create it with tailpack topics create")


def check(connection: Connection, scaled: ScaledGroup, *, follows_plans: bool, deadline_s: float = DEADLINE_S) -> None:
    """Wait until Kafka answers and the topics exist. Raises PreflightError after `deadline_s`.

    follows_plans: reject a group whose members use another assignor, because they do not follow plans.
    """
    needed = {scaled.topic_in(connection.namespace): TopicNeed(remedy="create it, or correct topic")}
    for topic in CONTROL:
        needed[qualified(connection.namespace, topic)] = CONTROL_NEED
    check_topics(connection, needed, deadline_s)
    if follows_plans:
        _check_group(connection, scaled.group_in(connection.namespace))


def topic_exists(connection: Connection, topic: Topic, otherwise: str) -> bool:
    """Return whether a control topic exists and is shown to this user. Else log what follows from that."""
    try:
        check_topics(connection, {qualified(connection.namespace, topic): CONTROL_NEED}, OBSERVER_S)
    except PreflightError as missing:
        log.info(f"{otherwise}: {missing}")
        return False
    return True


def describe_group(connection: Connection, group: str) -> Any:
    """Return confluent-kafka's description of a group; None without the right to describe it, or without an answer."""
    admin = AdminClient(client_config(connection))
    try:
        answer = admin.describe_consumer_groups([group], request_timeout=DESCRIBE_TIMEOUT_S)[group]
        return answer.result(2 * DESCRIBE_TIMEOUT_S)
    except (KafkaException, TimeoutError):
        return None


def _check_group(connection: Connection, group: str) -> None:
    """Reject a group whose members use another assignor. Without the right to describe the group, accept it."""
    if (found := describe_group(connection, group)) is None:
        return
    other = "consumer" if found.type is ConsumerGroupType.CONSUMER else found.partition_assignor
    if found.members and other not in ("", ASSIGNOR):  # empty while the group rebalances
        raise PreflightError(
            f"group {group} cannot be scaled: its {len(found.members)} members (assignor {other}) do not follow plans; "
            "stop them (docs/tutorials/own-consumer.md), or set another group"
        )
