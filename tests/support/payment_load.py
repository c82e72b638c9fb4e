"""A steady stream of payments during a test, and checks of the settled payments."""

import threading
import time
from functools import partial
from itertools import pairwise
from types import TracebackType

import msgspec
from confluent_kafka import Producer
from kafka_helpers import read_all
from payment_group import request

from contracts.clock import now_us
from contracts.events import PaymentSettled
from contracts.topics import Topic, qualified


class PaymentLoad:
    """Produces `rate` payments/s to the partitions in turn, until its block ends."""

    def __init__(self, kafka: str, namespace: str, *, rate: float, partitions: int) -> None:
        self._kafka = kafka
        self._namespace = namespace
        self.interval_s = 1 / rate
        """Seconds between two payments. It may be changed at any time."""
        self._partitions = partitions
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="payment-load")
        self.orders: list[str] = []
        self.acknowledged_us: dict[str, int] = {}
        """Order → time at which the brokers acknowledged it, µs since 1970."""

    def __enter__(self) -> "PaymentLoad":
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.finish()

    def finish(self) -> None:
        """Stop producing, and wait until the brokers have all payments."""
        self._stop.set()
        self._thread.join(90)
        assert not self._thread.is_alive(), "the brokers did not take the load"

    def _run(self) -> None:
        hasty = {"socket.timeout.ms": 2000, "socket.connection.setup.timeout.ms": 2000}
        client = {"bootstrap.servers": self._kafka, "log_level": 0} | hasty
        producer = Producer(client | {"enable.idempotence": True, "linger.ms": 1})
        topic = qualified(self._namespace, Topic.PAYMENTS_REQUESTED)
        due_s = time.monotonic()
        while not self._stop.wait(max(0.0, due_s - time.monotonic())):
            payment = request(len(self.orders))
            value = msgspec.json.encode(payment)
            partition, on_delivery = len(self.orders) % self._partitions, partial(self._acknowledged, payment.order_id)
            producer.produce(topic, value, key=payment.order_id, partition=partition, on_delivery=on_delivery)
            producer.poll(0)
            self.orders.append(payment.order_id)
            due_s += self.interval_s
        assert producer.flush(80) == 0

    def _acknowledged(self, order: str, error: object, record: object) -> None:
        if error is None:
            self.acknowledged_us[order] = now_us()

    def settled(self) -> list[PaymentSettled]:
        """Return all records of payments.settled, with repeated ones."""
        records = read_all(self._kafka, self._namespace, Topic.PAYMENTS_SETTLED)
        return [msgspec.json.decode(record.value(), type=PaymentSettled) for record in records]

    def unserved(self) -> set[str]:
        """Return the orders that are not settled yet."""
        return set(self.orders) - {record.order_id for record in self.settled()}


def repeats(settled: list[PaymentSettled]) -> list[PaymentSettled]:
    """Return the repeated records of settled payments, in order of their completion."""
    known: set[str] = set()
    again: list[PaymentSettled] = []
    for record in sorted(settled, key=lambda each: each.timeline.done_us or 0):
        if record.order_id in known:
            again.append(record)
        known.add(record.order_id)
    return again


def assert_in_order(settled: list[PaymentSettled]) -> None:
    """Fail if a payment was first settled after a later payment of its partition."""
    latest: dict[int, PaymentSettled] = {}
    known: set[str] = set()
    for record in sorted(settled, key=lambda each: (each.timeline.done_us or 0, each.timeline.offset or 0)):
        if record.order_id in known:
            continue
        known.add(record.order_id)
        before = latest.setdefault(record.timeline.partition or 0, record)
        assert (before.timeline.offset or 0) <= (record.timeline.offset or 0), f"out of order: {before} {record}"
        latest[record.timeline.partition or 0] = record


def longest_silence_s(settled: list[PaymentSettled]) -> float:
    """Return the longest time between two completions, s."""
    done = sorted(record.timeline.done_us or 0 for record in settled)
    return max((after - before) / 1e6 for before, after in pairwise(done))
