"""Invented runs with the shape of real runs: events in a queue, and the records about them on a broker."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt
from confluent_kafka import Producer

from contracts.connection import Connection
from contracts.events import (
    INTENDED_AT_HEADER,
    PLACED_AT_HEADER,
    NotificationSent,
    OrderPlaced,
    PaymentRequested,
    PaymentSettled,
    ShipmentScheduled,
    Timeline,
)
from contracts.topics import Topic, qualified
from report.run_info import RunInfo

Micros = npt.NDArray[np.int64]
PARTITIONS: Final = 5
SERVICE_US: Final = 5_000
DECLINED_EVERY: Final = 10
COMMON: Final = {"customer": "c-17", "merchant": "books", "country": "DE", "currency": "EUR", "amount_minor": 4_200}


@dataclass(frozen=True, slots=True)
class MadeUpRun:
    """Times of all events, µs, in the order in which they are scheduled. Event k is in partition k mod 5."""

    intended: Micros
    placed: Micros
    accepted: Micros
    received: Micros
    done: Micros
    shipped: Micros
    notified: Micros

    def timeline(self, k: int, upto: Topic) -> Timeline:
        """Return the timeline of event k as the record on topic `upto` carries it."""
        served = upto is not Topic.PAYMENTS_REQUESTED
        return Timeline(
            intended_us=int(self.intended[k]),
            placed_us=int(self.placed[k]),
            accepted_us=int(self.accepted[k]),
            received_us=int(self.received[k]) if served else None,
            done_us=int(self.done[k]) if served else None,
            shipped_us=int(self.shipped[k]) if upto in {Topic.SHIPMENTS_SCHEDULED, Topic.NOTIFICATIONS_SENT} else None,
            notified_us=int(self.notified[k]) if upto is Topic.NOTIFICATIONS_SENT else None,
            partition=k % PARTITIONS,
            offset=k // PARTITIONS,
            replica=f"payment-{k % PARTITIONS % 2}" if served else None,
            epoch=1 if served else None,
        )


def made_up_run(events: int, rate: float, started_us: int, seed: int) -> MadeUpRun:
    """Return `events` evenly spaced events, `rate` per second. A partition serves them in order, in 5 ms each."""
    chance = np.random.default_rng(seed)
    intended = started_us + (np.arange(events) * (1e6 / rate)).astype(np.int64)
    placed = intended + chance.exponential(800, events).astype(np.int64)
    accepted = placed + 2_000 + chance.exponential(2_000, events).astype(np.int64)
    done = np.zeros(events, dtype=np.int64)
    for partition in range(PARTITIONS):
        mine = slice(partition, None, PARTITIONS)
        work = SERVICE_US * np.arange(1, len(done[mine]) + 1)
        done[mine] = np.maximum.accumulate(accepted[mine] + 1_500 - work + SERVICE_US) + work
    shipped = done + 3_000 + chance.exponential(2_000, events).astype(np.int64)
    notified = shipped + 3_000 + chance.exponential(2_000, events).astype(np.int64)
    return MadeUpRun(intended, placed, accepted, done - SERVICE_US, done, shipped, notified)


def records_of(run: MadeUpRun, k: int) -> dict[Topic, object]:
    """Return all records about event k. Every tenth order is declined and not shipped."""
    order = f"o-{k:08d}"
    accepted = k % DECLINED_EVERY != 0
    settled, shipped, notified = Topic.PAYMENTS_SETTLED, Topic.SHIPMENTS_SCHEDULED, Topic.NOTIFICATIONS_SENT
    records: dict[Topic, object] = {
        Topic.ORDERS_PLACED: OrderPlaced(order_id=order, card_number="4242424242424242", **COMMON),  # type: ignore[arg-type]
        Topic.PAYMENTS_REQUESTED: PaymentRequested(
            order_id=order, card_token="t", timeline=run.timeline(k, Topic.PAYMENTS_REQUESTED),
            **COMMON,  # type: ignore[arg-type]
        ),
        settled: PaymentSettled(
            payment_id=f"p-{order}", order_id=order, accepted=accepted,
            decline_reason=None if accepted else "card limit", risk_score=0.1, timeline=run.timeline(k, settled),
            **COMMON,  # type: ignore[arg-type]
        ),
        notified: NotificationSent(
            notification_id=f"n-{order}", order_id=order, payment_id=f"p-{order}",
            shipment_id=f"s-{order}" if accepted else None, customer="c-17", accepted=accepted,
            text="Your parcel is on its way.", timeline=run.timeline(k, notified),
        ),
    }  # fmt: skip
    if accepted:
        records[shipped] = ShipmentScheduled(
            shipment_id=f"s-{order}",
            order_id=order,
            payment_id=f"p-{order}",
            customer="c-17",
            country="DE",
            parcel="S",
            carrier="post",
            promised_on="2026-01-05",
            timeline=run.timeline(k, shipped),
        )
    return records


DEADLINE_S: Final = 60.0
PAYMENT_ONLY: Final = frozenset({Topic.PAYMENTS_REQUESTED, Topic.PAYMENTS_SETTLED})


def publish(
    connection: Connection,
    run: MadeUpRun,
    *,
    pipeline: bool,
    copies: Callable[[Topic, int], int] = lambda _topic, _k: 1,
) -> None:
    """Publish every record of `run`. copies: returns how often event k is on a topic (0: never).

    Raises TimeoutError if the broker does not acknowledge in time.
    """
    quiet = {"log_level": 3}  # a broker that has just started makes an idempotent producer wait, and say so
    producer = Producer({**connection.librdkafka(), "enable.idempotence": True, "linger.ms": 20, **quiet})
    for topic, k, value in _records(run):
        if not pipeline and topic not in PAYMENT_ONLY:
            continue
        partition = k % PARTITIONS if topic is Topic.PAYMENTS_REQUESTED else -1
        name, key = qualified(connection.namespace, topic), f"o-{k:08d}"
        for _ in range(copies(topic, k)):
            send(producer, name, key=key, value=value, headers=headers_of(run, k), partition=partition)
    finish(producer)


def send(
    producer: Producer,
    topic: str,
    *,
    key: str,
    value: bytes,
    headers: list[tuple[str, str | bytes | None]] | None = None,
    partition: int = -1,
) -> None:
    """Produce one record. Wait while the producer's queue is full."""
    while True:
        try:
            producer.produce(topic, key=key, value=value, headers=headers or [], partition=partition)
        except BufferError:
            producer.poll(0.1)
        else:
            producer.poll(0)
            return


def finish(producer: Producer) -> None:
    """Wait until all records are acknowledged. Raises TimeoutError if they are not."""
    if left := producer.flush(DEADLINE_S):
        raise TimeoutError(f"{left} records were not acknowledged within {DEADLINE_S:.0f} s; is the broker well?")


def headers_of(run: MadeUpRun, k: int) -> list[tuple[str, str | bytes | None]]:
    """Return the headers with which the generator sends event k."""
    return [(INTENDED_AT_HEADER, str(run.intended[k])), (PLACED_AT_HEADER, str(run.placed[k]))]


def run_info(connection: Connection, run: MadeUpRun, *, pipeline: bool) -> RunInfo:
    """Return the description of a made-up run."""
    started_us = int(run.intended[0])
    return RunInfo(
        run=connection.namespace, scenario={"name": "made-up"}, policy="static", seed=1,
        topology="pipeline" if pipeline else "payment-only", bootstrap_servers=connection.bootstrap_servers,
        client_properties=connection.client_properties, payment_partitions=PARTITIONS, latency_target_s=0.5,
        percentile=0.999, duration_s=float((run.intended[-1] - started_us) // 1_000_000 + 1), started_us=started_us,
        drained_us=int(run.notified[-1]), events_scheduled=len(run.intended),
    )  # fmt: skip


def _records(run: MadeUpRun) -> Iterator[tuple[Topic, int, bytes]]:
    encode = msgspec.json.Encoder().encode
    for k in range(len(run.intended)):
        for topic, record in records_of(run, k).items():
            yield topic, k, encode(record)
