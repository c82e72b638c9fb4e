"""Orders as customers would place them, and their Kafka records.

An order depends only on the run, the seed and the event number. Its record is prepared early, without the send time.
"""

import uuid
from collections.abc import Callable, Iterator
from functools import lru_cache
from hashlib import blake2b, sha1
from math import exp
from statistics import NormalDist
from typing import Final, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from contracts import events as catalogue
from contracts.events import (
    DEMO_TOKEN_KEY,
    INTENDED_AT_HEADER,
    MAX_AMOUNT_MINOR,
    PARTITION_HEADER,
    PLACED_AT_HEADER,
    OrderPlaced,
    PaymentRequested,
    Timeline,
)
from contracts.topics import Topic, partitions_of
from loadgen.faults import UNREADABLE
from loadgen.keys import CUSTOMERS, customer_name
from loadgen.schedule import NO_KEY, Schedule
from loadgen.spec import LoadSpec, Topology
from partitioners import Partitioner

_AMOUNT: Final = NormalDist(mu=8.2, sigma=1.0)
"""Natural logarithm of the amount in minor units. Half of the amounts are below 36.41, and 0.1 % are above 800."""
_NAMESPACE: Final = uuid.uuid5(uuid.NAMESPACE_URL, "tailpack:orders")
Headers = list[tuple[str, bytes]]
ANY_PARTITION = -1
"""Partition of a record for which the Kafka client chooses it by a hash of the key."""


class Orders:
    """Creates the orders of one run by their numbers, in about 10 µs each."""

    def __init__(self, run: str, seed: int) -> None:
        """`run` is part of every order id, so that runs on one broker never share an id."""
        self._run_id = uuid.uuid5(_NAMESPACE, f"{run}:{seed}")
        self._chance_key = blake2b(f"orders:{seed}".encode(), digest_size=32).digest()

    def order_id(self, number: int) -> str:
        """Return the id of event `number`."""
        digits = sha1(self._run_id.bytes + b"%d" % number, usedforsecurity=False).hexdigest()
        variant = "89ab"[int(digits[16], 16) & 3]  # as uuid.uuid5, in a third of the time
        return f"{digits[:8]}-{digits[8:12]}-5{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:32]}"

    def order(self, number: int, key: int | None = None) -> OrderPlaced:
        """Return order `number`. key: number of the customer; None: chosen pseudo-randomly from the seed."""
        chance = blake2b(number.to_bytes(8, "big"), key=self._chance_key, digest_size=32).digest()
        customer = int.from_bytes(chance[0:4], "big") % CUSTOMERS if key is None else key
        return OrderPlaced(
            order_id=self.order_id(number),
            customer=customer_name(customer),
            merchant=catalogue.MERCHANTS[chance[4] % len(catalogue.MERCHANTS)],
            country=catalogue.COUNTRIES[customer % len(catalogue.COUNTRIES)],
            currency=catalogue.CURRENCIES[chance[5] % len(catalogue.CURRENCIES)],
            amount_minor=_amount_minor(int.from_bytes(chance[6:12], "big")),
            card_number=card_number(customer),
        )


@lru_cache(CUSTOMERS)
def card_number(customer: int) -> str:
    """Return the 16-digit card number of a customer."""
    digits = f"4000{customer * 7_919_317 % 10**11:011d}"
    return digits + catalogue.luhn_digit(digits)


def _amount_minor(chance: int) -> int:
    drawn = exp(_AMOUNT.inv_cdf((chance + 0.5) / 2**48))
    return min(max(round(drawn), 1), MAX_AMOUNT_MINOR)


class Record(NamedTuple):
    """A complete Kafka record."""

    key: bytes
    value: bytes
    headers: Headers
    partition: int


Event = Callable[[int], Record]
"""Returns the record of a prepared event for its send time (µs since the epoch)."""


def order_event(order: OrderPlaced, intended_us: int, partition: int | None) -> Event:
    """Return the event of an order for `orders.placed`. All is encoded, except the header with the send time."""
    key, value = order.order_id.encode(), msgspec.json.encode(order)
    headers: Headers = [(INTENDED_AT_HEADER, b"%d" % intended_us)]
    if partition is not None:
        headers.append((PARTITION_HEADER, b"%d" % partition))
    return lambda placed_us: Record(key, value, [*headers, (PLACED_AT_HEADER, b"%d" % placed_us)], ANY_PARTITION)


def payment_event(order: OrderPlaced, intended_us: int, partition: int | None) -> Event:
    """Return the event of a payment request as Order would write it.

    The send time is part of its timeline and is inserted into the encoded value.
    """
    request = PaymentRequested(
        **order.purchase(),
        card_token=_demo_token(order.card_number),
        timeline=Timeline(intended_us=intended_us, placed_us=0),
    )
    head, _, tail = msgspec.json.encode(request).rpartition(_NOT_PLACED)
    head += _NOT_PLACED[:-1]
    key, intended = order.order_id.encode(), (INTENDED_AT_HEADER, b"%d" % intended_us)
    target = ANY_PARTITION if partition is None else partition

    def record(placed_us: int) -> Record:
        placed = b"%d" % placed_us
        return Record(key, head + placed + tail, [intended, (PLACED_AT_HEADER, placed)], target)

    return record


_NOT_PLACED: Final = b'"placed_us":0'


@lru_cache(CUSTOMERS)
def _demo_token(number: str) -> str:
    return catalogue.card_token(number, DEMO_TOKEN_KEY)


def events(
    spec: LoadSpec,
    schedule: Schedule,
    orders: Orders,
    started_us: int,
    *,
    numbers: npt.NDArray[np.int64] | None = None,
    poison: npt.NDArray[np.bool_] | None = None,
) -> Iterator[Event]:
    """Yield the events of the run in the order of `numbers`.

    started_us: intended time of second 0 of the workload, µs since the epoch. numbers: events to send; None: all.
    poison: mask of the events that are unreadable; None: none.
    """
    make = payment_event if spec.topology is Topology.PAYMENT_ONLY else order_event
    has_partition = spec.partitioner is Partitioner.EXPLICIT or spec.topology is Topology.PAYMENT_ONLY
    for number in range(len(schedule)) if numbers is None else numbers.tolist():
        is_poison = poison is not None and poison[number]
        intended_us = started_us + int(schedule.offset_us[number])
        partition = int(schedule.partition[number]) if has_partition else None
        key = None if schedule.key is None or schedule.key[number] == NO_KEY else int(schedule.key[number])
        event = make(orders.order(number, key), intended_us, partition)
        yield _make_unreadable(event) if is_poison else event


def _make_unreadable(event: Event) -> Event:
    return lambda placed_us: event(placed_us)._replace(value=UNREADABLE)


def send_numbers(due_us: npt.NDArray[np.int64], is_duplicate: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """Return the numbers of the events in send order. A duplicate follows its event directly."""
    order = np.argsort(due_us, kind="stable")
    return np.repeat(order, 1 + is_duplicate[order])


def input_topic(spec: LoadSpec) -> tuple[Topic, int]:
    """Return the input topic of the load and its required number of partitions."""
    topic = Topic.PAYMENTS_REQUESTED if spec.topology is Topology.PAYMENT_ONLY else Topic.ORDERS_PLACED
    return topic, partitions_of(topic, spec.partitions, spec.pipeline_partitions)
