"""Schedule and orders made into Kafka records: what is known before the send, and what only the send knows."""

from collections.abc import Iterator
from typing import NamedTuple, Protocol

import msgspec

from contracts.events import (
    DEMO_TOKEN_KEY,
    INTENDED_AT_HEADER,
    PARTITION_HEADER,
    PLACED_AT_HEADER,
    OrderPlaced,
    PaymentRequested,
    Timeline,
    card_token,
)
from contracts.topics import Topic, partitions_of
from loadgen.orders import Orders
from loadgen.schedule import Schedule
from loadgen.spec import Grouping, LoadSpec, Topology

Headers = list[tuple[str, bytes]]
ANY_PARTITION = -1
"""The Kafka client chooses, by hash of the key."""


class Record(NamedTuple):
    """One Kafka record, complete."""

    key: bytes
    value: bytes
    headers: Headers
    partition: int


class Event(Protocol):
    """An event made ready before its time."""

    def record(self, placed_us: int) -> Record:
        """Return the record, stamped with its send time."""
        ...


class OrderEvent:
    """An order on its way to `orders.placed`: encoded beforehand, only a header waits for the send."""

    __slots__ = ("_headers", "_key", "_value")

    def __init__(self, order: OrderPlaced, intended_us: int, partition: int | None) -> None:
        self._key = order.order_id.encode()
        self._value = msgspec.json.encode(order)
        self._headers: Headers = [(INTENDED_AT_HEADER, b"%d" % intended_us)]
        if partition is not None:
            self._headers.append((PARTITION_HEADER, b"%d" % partition))

    def record(self, placed_us: int) -> Record:
        """Return the record, stamped with its send time."""
        return Record(self._key, self._value, [*self._headers, (PLACED_AT_HEADER, b"%d" % placed_us)], ANY_PARTITION)


class PaymentEvent:
    """A payment request, as Order would have written it.

    Its timeline is part of the value, so it is encoded at the send.
    """

    __slots__ = ("_intended_us", "_order", "_partition", "_token")

    def __init__(self, order: OrderPlaced, intended_us: int, partition: int | None) -> None:
        self._order = order
        self._token = card_token(order.card_number, DEMO_TOKEN_KEY)
        self._intended_us = intended_us
        self._partition = ANY_PARTITION if partition is None else partition

    def record(self, placed_us: int) -> Record:
        """Return the record, stamped with its send time."""
        order = self._order
        request = PaymentRequested(
            order_id=order.order_id,
            customer=order.customer,
            merchant=order.merchant,
            country=order.country,
            currency=order.currency,
            amount_minor=order.amount_minor,
            card_token=self._token,
            timeline=Timeline(intended_us=self._intended_us, placed_us=placed_us),
        )
        headers = [(INTENDED_AT_HEADER, b"%d" % self._intended_us), (PLACED_AT_HEADER, b"%d" % placed_us)]
        return Record(order.order_id.encode(), msgspec.json.encode(request), headers, self._partition)


def events(spec: LoadSpec, schedule: Schedule, orders: Orders, started_us: int) -> Iterator[Event]:
    """Yield the run's events in order of their intended times.

    started_us: intended time of second 0 of the workload, µs since the epoch.
    """
    make = PaymentEvent if spec.topology is Topology.PAYMENT_ONLY else OrderEvent
    explicit = spec.grouping is Grouping.EXPLICIT
    for number in range(len(schedule)):
        intended_us = started_us + int(schedule.offset_us[number])
        partition = int(schedule.partition[number]) if explicit else None
        yield make(orders.order(number), intended_us, partition)


def input_topic(spec: LoadSpec) -> tuple[Topic, int]:
    """Return the topic that the load enters by, and how many partitions it must have."""
    topic = Topic.PAYMENTS_REQUESTED if spec.topology is Topology.PAYMENT_ONLY else Topic.ORDERS_PLACED
    return topic, partitions_of(topic, spec.partitions)
