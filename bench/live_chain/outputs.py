"""What the stages of a live chain have written, and how long each event took."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec
import numpy as np
from confluent_kafka import Consumer, TopicPartition

from autoscaler.live.kafka import reader
from bench.handover.readers import NO_ENDS
from contracts.connection import Connection
from contracts.events import Timeline
from contracts.topics import Topic, qualified
from report.measures import IntArray


@dataclass(frozen=True, slots=True)
class Service:
    """The live service of a stage."""

    module: str
    """Of its replicas."""
    reads: Topic
    writes: Topic
    stamp: str
    """Field of a timeline: when it was done with the event."""


SHIPMENT: Final = "shipment"
NOTIFICATION: Final = "notification"
SERVICES: Final = {
    "payment": Service("services.payment", Topic.PAYMENTS_REQUESTED, Topic.PAYMENTS_SETTLED, "done_us"),
    SHIPMENT: Service("services.shipment.replica", Topic.PAYMENTS_SETTLED, Topic.SHIPMENTS_SCHEDULED, "shipped_us"),
    NOTIFICATION: Service(
        "services.notification.replica", Topic.SHIPMENTS_SCHEDULED, Topic.NOTIFICATIONS_SENT, "notified_us"
    ),
}
"""In their order; a chain has the first of them, or more."""


class Log:
    """A topic that is read on whenever it is asked for."""

    def __init__(self, connection: Connection, topic: str, partitions: int) -> None:
        self._consumer = Consumer(reader(connection, isolation_level="read_committed") | NO_ENDS)
        self._consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])

    def fresh(self) -> Iterator[bytes]:
        """Yield the values of records that came since it was asked last."""
        while found := self._consumer.consume(2000, 0.2):
            yield from (value for one in found if one.error() is None and (value := one.value()) is not None)

    def close(self) -> None:
        """Leave the brokers."""
        self._consumer.close()


class Passed(msgspec.Struct, frozen=True):
    """A stage's output, as far as every stage's are alike."""

    order_id: str
    timeline: Timeline
    accepted: bool = True


class Outputs:
    """The outputs of some stages. partitions: of each one's topic."""

    def __init__(self, connection: Connection, stages: Sequence[str], partitions: int) -> None:
        self._logs = {
            name: Log(connection, qualified(connection.namespace, SERVICES[name].writes), partitions) for name in stages
        }
        self._found: dict[str, dict[str, Passed]] = {name: {} for name in stages}
        self.repeated = 0
        """Records of an order that had one of that stage already."""

    def complete(self, events: int) -> bool:
        """Whether each stage has done all it must: shipments are of accepted payments, all else is of every event."""
        self._read()
        payments, *behind = self._found.values()
        accepted = sum(one.accepted for one in payments.values())
        shipments, *others = behind or [payments]
        return len(payments) == events and len(shipments) == accepted and all(len(one) == events for one in others)

    def took_us(self) -> tuple[IntArray, dict[str, IntArray]]:
        """Return how long each event took from its intended time until all was done, and at each stage, µs.

        A stage's own count from the end of the one before it.
        """
        began_us = ended_us = {
            order: one.timeline.intended_us for order, one in next(iter(self._found.values())).items()
        }
        stages = {}
        done_us = began_us
        for name, passed in self._found.items():
            before_us = done_us
            done_us = {order: getattr(one.timeline, SERVICES[name].stamp) or 0 for order, one in passed.items()}
            stages[name] = _array(at_us - before_us[order] for order, at_us in done_us.items() if order in before_us)
            ended_us = ended_us | done_us
        return _array(ended_us[order] - at_us for order, at_us in began_us.items()), stages

    def _read(self) -> None:
        for name, log in self._logs.items():
            for value in log.fresh():
                one = msgspec.json.decode(value, type=Passed)
                self.repeated += one.order_id in self._found[name]
                self._found[name].setdefault(one.order_id, one)

    def close(self) -> None:
        """Leave the brokers."""
        for log in self._logs.values():
            log.close()


def _array(values: Iterator[int]) -> IntArray:
    return np.fromiter(values, np.int64)
