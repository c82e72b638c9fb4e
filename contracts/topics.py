"""Topics, groups and partition counts. Keys: see each topic."""

from enum import StrEnum
from typing import Final

PIPELINE_PARTITIONS: Final = 4
"""Partitions of every topic keyed by order id."""


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
    PROGRESS = "payment.progress"
    """Progress; key: replica; one partition, short retention."""


class Group(StrEnum):
    """Consumer groups without the run's namespace. All start at the earliest offset."""

    ORDER = "order"
    PAYMENT = "payment"
    SHIPMENT = "shipment"
    NOTIFICATION = "notification"


AUTO_OFFSET_RESET: Final = "earliest"
"""For all groups: with `latest` the first events of a new partition would be lost to the group."""


def qualified(namespace: str, name: str) -> str:
    """Return `name` inside `namespace` ("run-1" + "orders.placed" → "run-1.orders.placed")."""
    return f"{namespace}.{name}" if namespace else str(name)


def partitions_of(topic: Topic, payment_partitions: int) -> int:
    """Return how many partitions `topic` has in a run whose Payment group owns `payment_partitions`."""
    if topic is Topic.PAYMENTS_REQUESTED:
        return payment_partitions
    single = {Topic.DEAD_LETTERS, Topic.PLANS, Topic.JOURNAL, Topic.PROGRESS}
    return 1 if topic in single else PIPELINE_PARTITIONS
