"""Topics, groups and partition counts. Keys: see each topic."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from contracts.settings import Settings, setting


class Topic(StrEnum):
    """Names without the run's namespace."""

    ORDERS_PLACED = "orders.placed"
    """OrderPlaced; key: order id; headers `intended_at` and `placed_at` (µs), `partition` where the load chooses it."""
    PAYMENTS_REQUESTED = "payments.requested"
    """PaymentRequested; key: order id; partition: by the grouping. The topic whose consumers are scaled."""
    PAYMENTS_SETTLED = "payments.settled"
    """PaymentSettled; key: order id. Timeline topic of payment-only runs."""
    SHIPMENTS_SCHEDULED = "shipments.scheduled"
    """ShipmentScheduled; key: order id. Accepted payments only."""
    NOTIFICATIONS_SENT = "notifications.sent"
    """NotificationSent; key: order id. Timeline topic of pipeline runs."""
    ORDERS_STATUS = "orders.status"
    """OrderStatus, Order's own memory of what became of each order; key: order id."""
    DEAD_LETTERS = "dead.letters"
    """DeadLetter; key: as the refused record's."""
    PLANS = "autoscaler.plans"
    """PlanRecord; key: group; compacted, one partition, transactional writer."""
    JOURNAL = "autoscaler.journal"
    """JournalEntry; one partition."""
    PROGRESS = "autoscaler.progress"
    """Progress; key: replica; one partition, short retention."""


class Group(StrEnum):
    """Consumer groups without the run's namespace. All start at the earliest offset."""

    ORDER = "order"
    PAYMENT = "payment"
    SHIPMENT = "shipment"
    NOTIFICATION = "notification"


CONTROL: Final = (Topic.PLANS, Topic.JOURNAL, Topic.PROGRESS)
"""Those between an autoscaler and the group that it scales, whatever service that is."""
AUTO_OFFSET_RESET: Final = "earliest"
"""For all groups: with `latest` the first events of a new partition would be lost to the group."""


def qualified(namespace: str, name: str) -> str:
    """Return `name` inside `namespace` ("run-1" + "orders.placed" → "run-1.orders.placed")."""
    return f"{namespace}.{name}" if namespace else str(name)


@dataclass(frozen=True, kw_only=True)
class KeyedTopics(Settings):
    """How finely the topics between Order, Shipment and Notification are divided."""

    pipeline_partitions: int = setting(4, "partitions", least=1, most=1_000)
    """Of every topic keyed by order id: so many instances of Order, Shipment or Notification can work side by side."""


PIPELINE_PARTITIONS: Final = KeyedTopics().pipeline_partitions
"""Where nothing else is told."""


@dataclass(frozen=True, kw_only=True)
class ScaledGroup(Settings):
    """Which group is scaled. Its control topics are those of the namespace."""

    topic: str = setting("")
    """The topic that the scaled group reads, by its whole name; empty: `payments.requested` of the namespace."""
    group: str = setting("")
    """The consumer group that is scaled, by its whole name; empty: `payment` of the namespace."""

    def topic_in(self, namespace: str) -> str:
        """Return the topic by the name that brokers know."""
        return self.topic or qualified(namespace, Topic.PAYMENTS_REQUESTED)

    def group_in(self, namespace: str) -> str:
        """Return the group by the name that brokers know."""
        return self.group or qualified(namespace, Group.PAYMENT)


def partitions_of(topic: Topic, payment_partitions: int, pipeline_partitions: int = PIPELINE_PARTITIONS) -> int:
    """Return how many partitions `topic` has in a run whose Payment group owns `payment_partitions`."""
    if topic is Topic.PAYMENTS_REQUESTED:
        return payment_partitions
    single = {Topic.DEAD_LETTERS, Topic.PLANS, Topic.JOURNAL, Topic.PROGRESS}
    return 1 if topic in single else pipeline_partitions
