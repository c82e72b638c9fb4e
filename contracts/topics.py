"""Topics, groups and partition counts."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from contracts.settings import Settings, setting


class Topic(StrEnum):
    """Topics, without the run's namespace. Records, keys and partitions: docs/reference/records.md."""

    ORDERS_PLACED = "orders.placed"
    PAYMENTS_REQUESTED = "payments.requested"
    PAYMENTS_SETTLED = "payments.settled"
    SHIPMENTS_SCHEDULED = "shipments.scheduled"
    NOTIFICATIONS_SENT = "notifications.sent"
    ORDERS_STATUS = "orders.status"
    DEAD_LETTERS = "dead.letters"
    PLANS = "autoscaler.plans"
    JOURNAL = "autoscaler.journal"
    PROGRESS = "autoscaler.progress"
    HOLDS = "autoscaler.control"


class Group(StrEnum):
    """Consumer groups, without the run's namespace. All start at the earliest offset."""

    ORDER = "order"
    PAYMENT = "payment"
    SHIPMENT = "shipment"
    NOTIFICATION = "notification"


CONTROL: Final = (Topic.PLANS, Topic.JOURNAL, Topic.PROGRESS, Topic.HOLDS)
"""Topics between an autoscaler and the group that it scales."""
AUTO_OFFSET_RESET: Final = "earliest"
"""Offset reset of all groups. With `latest` a group would skip the first events of a new partition."""
MAX_MESSAGE_BYTES: Final = "max.message.bytes"  # topic property: largest batch that brokers accept, bytes
DEFAULT_MAX_MESSAGE_BYTES: Final = 1_048_576


def qualified(namespace: str, name: str) -> str:
    """Return `name` inside `namespace` ("run-1" + "orders.placed" → "run-1.orders.placed")."""
    return f"{namespace}.{name}" if namespace else str(name)


PIPELINE_PARTITIONS: Final = 4  # default


@dataclass(frozen=True, kw_only=True)
class KeyedTopics(Settings):
    """Number of partitions of the topics that are keyed by order id."""

    pipeline_partitions: int = setting(PIPELINE_PARTITIONS, "partitions", least=1, most=1_000)
    """Partitions of every topic keyed by order id. At most this many instances of a stage share its work."""


@dataclass(frozen=True, kw_only=True)
class ScaledGroup(Settings):
    """The consumer group that is scaled. Its topic may have any name. Control topics begin with the namespace."""

    topic: str = setting("")
    """Full name of the topic that the scaled group reads; empty: `payments.requested` of the namespace."""
    group: str = setting("")
    """Full name of the scaled consumer group; empty: `payment` of the namespace."""

    def topic_in(self, namespace: str) -> str:
        """Return the full name of the topic."""
        return self.topic or qualified(namespace, Topic.PAYMENTS_REQUESTED)

    def group_in(self, namespace: str) -> str:
        """Return the full name of the group."""
        return self.group or qualified(namespace, Group.PAYMENT)


PAYMENT_GROUP: Final = ScaledGroup()


def partitions_of(topic: Topic, payment_partitions: int, pipeline_partitions: int = PIPELINE_PARTITIONS) -> int:
    """Return the number of partitions of `topic` in a run with `payment_partitions` partitions for Payment."""
    if topic is Topic.PAYMENTS_REQUESTED:
        return payment_partitions
    return 1 if topic in (Topic.DEAD_LETTERS, *CONTROL) else pipeline_partitions
