"""One replica on librdkafka: its clients' settings, its duties, and its server of one event at a time.

Settings are as one chooses them for low latency. Their lengths of time are milliseconds, as the names say.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from confluent_kafka import KafkaError, Producer

from contracts.connection import Connection
from contracts.progress import PROGRESS_INTERVAL_S
from contracts.topics import AUTO_OFFSET_RESET, Group, Topic, qualified
from services.common.records import ServiceError
from services.comparators.replica import NO_PLAN, Replica
from services.consumer import Event
from services.payment.settings import ReplicaSettings

log = logging.getLogger(__name__)

FETCH_WAIT_MS: Final = 50
"""As in `services.consumer`: a fetch under way at a handover delays the new owner's first one this long."""
QUEUED_MESSAGES: Final = 500
"""2.5 s of work at 5 ms. The default, 100,000, makes a replica fetch events that it gives away unread."""
FETCH_BACKOFF_MS: Final = 10
"""Pause before a partition is fetched again once the queue is full; the default, 1000, empties so short a queue."""
RETRY_BACKOFF_MS: Final = 20
POLL_INTERVAL_MS: Final = 24 * 3600 * 1000
"""A slow event must not cost the membership; heartbeats tell whether the replica lives."""
WAKE_MS: Final = 100
"""librdkafka's threads sleep up to a second where nothing wakes them: after an incremental rebalance partitions that
did not even move are not fetched for so long (0.9 s measured), heartbeats of 0.1 s are late, and a member that has to
join again sits still. A metadata refresh, about one topic, wakes both the thread of the group and the fetching one."""
DELIVERY_TIMEOUT_MS: Final = 120_000
"""How long an output may wait for a leader; none of it has been committed."""
DRAIN_S: Final = 2.0
"""How long outputs are waited for before partitions are given away."""
IDLE_WAIT_S: Final = 0.05
"""A poll ends as soon as something is there; a signal is noticed after it."""


def _shared(connection: Connection, settings: ReplicaSettings) -> dict[str, Any]:
    """Return what every client of a replica takes."""
    return connection.librdkafka() | {
        "client.id": settings.replica,
        "retry.backoff.ms": RETRY_BACKOFF_MS,
        "reconnect.backoff.ms": RETRY_BACKOFF_MS,
        "reconnect.backoff.max.ms": 1000,
    }


def producer(connection: Connection, settings: ReplicaSettings) -> dict[str, Any]:
    """Return the configuration of the output's producer."""
    return _shared(connection, settings) | {
        "enable.idempotence": True,
        "linger.ms": 0,
        "message.timeout.ms": DELIVERY_TIMEOUT_MS,
    }


def any_consumer(connection: Connection, settings: ReplicaSettings) -> dict[str, Any]:
    """Return what consumers of every protocol take, share groups included."""
    return _shared(connection, settings) | {
        "group.id": qualified(connection.namespace, Group.PAYMENT),
        "fetch.wait.max.ms": FETCH_WAIT_MS,
        "max.poll.interval.ms": POLL_INTERVAL_MS,
    }


def group_consumer(connection: Connection, settings: ReplicaSettings) -> dict[str, Any]:
    """Return what consumers take that own partitions and commit offsets."""
    return any_consumer(connection, settings) | {
        "auto.offset.reset": AUTO_OFFSET_RESET,
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "queued.min.messages": QUEUED_MESSAGES,
        "fetch.queue.backoff.ms": FETCH_BACKOFF_MS,
        "fetch.error.backoff.ms": RETRY_BACKOFF_MS,
        "topic.metadata.refresh.interval.ms": WAKE_MS,
    }


@dataclass(slots=True)
class _Duty:
    every_s: float
    do: Callable[[], None]
    due_s: float


class Duties:
    """Runs each duty at its interval, whenever the server waits: for the end of an event's service, or for events."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._clock = clock
        self._sleep = sleep
        self._duties: list[_Duty] = []

    def add(self, every_s: float, do: Callable[[], None]) -> None:
        """Run `do` every `every_s` seconds, first after that time."""
        self._duties.append(_Duty(every_s, do, self._clock() + every_s))

    def run_due(self) -> float:
        """Run what is due; return the seconds until the next duty (at least one must have been added)."""
        for duty in self._duties:
            now_s = self._clock()
            if duty.due_s <= now_s:
                duty.do()
                duty.due_s = max(duty.due_s + duty.every_s, now_s)  # a duty that was late is not repeated in a burst
        return max(0.0, min(duty.due_s for duty in self._duties) - self._clock())

    def wait_until(self, deadline_s: float) -> None:
        """Sleep until `deadline_s` on the clock, running duties that fall into this time."""
        while (left_s := deadline_s - self._clock()) > 0:
            self._sleep(min(left_s, self.run_due()))


class Output:
    """A producer whose acknowledgements arrive in `serve` and `drain`, on the caller's thread."""

    def __init__(self, options: dict[str, Any]) -> None:
        self._failed: KafkaError | None = None
        self._producer = Producer(options, logger=log)

    def send(
        self, topic: str, key: bytes | None, value: bytes, acknowledged: Callable[[], None] = lambda: None
    ) -> None:
        """Hand one record to the producer; `acknowledged` is called once the broker has it."""

        def delivered(error: KafkaError | None, _: Any) -> None:
            if error is None:
                acknowledged()
            else:
                self._failed = error

        self._producer.produce(topic, value=value, key=key, on_delivery=delivered)

    def serve(self) -> None:
        """Take acknowledgements that have arrived. Raises ServiceError when an output failed for good."""
        self._producer.poll(0)
        if self._failed is not None:
            raise ServiceError(f"an output was not written ({self._failed.str()}); restart me once Kafka is well")

    def drain(self, deadline_s: float) -> bool:
        """Wait until everything sent is acknowledged; return False after `deadline_s` seconds."""
        return int(self._producer.flush(deadline_s)) == 0


class Server:
    """Serves events, writes their outputs, and reports. Runtimes differ in how they get events and confirm them."""

    def __init__(self, settings: ReplicaSettings, connection: Connection) -> None:
        self.output = Output(producer(connection, settings))
        self.replica = Replica(settings)
        self.duties = Duties()
        self.duties.add(PROGRESS_INTERVAL_S, self.report)
        self._namespace = connection.namespace
        self._progress_topic = qualified(connection.namespace, Topic.PROGRESS)

    def serve(self, message: Any, received_us: int, acknowledged: Callable[[], None], *, idle: bool) -> None:
        """Serve one event. `acknowledged` is called, during a later event or wait, once its output is written.

        idle: nothing was waiting when the last one ended. Raises ServiceError when an output failed for good.
        """
        self.duties.wait_until(self.replica.begin(message.key(), idle=idle))
        event = Event(
            topic=message.topic(),
            partition=message.partition(),
            offset=message.offset(),
            key=message.key(),
            value=message.value(),
            headers=(),
            timestamp_us=message.timestamp()[1] * 1000,
            received_us=received_us,
            epoch=NO_PLAN,
        )
        topic, key, value = self.replica.finish(event)
        self.output.send(qualified(self._namespace, topic), key, value, acknowledged)
        self.output.serve()

    def idle_wait_s(self) -> float:
        """Run what is due, take acknowledgements; return how long to wait for an event."""
        self.output.serve()
        return min(IDLE_WAIT_S, self.duties.run_due())

    def report(self) -> None:
        """Publish progress now."""
        report = self.replica.report()
        self.output.send(self._progress_topic, report.replica.encode(), msgspec.json.encode(report))

    def end(self) -> None:
        """Publish the last report."""
        self.replica.stopping = True
        self.report()
        self.output.drain(DRAIN_S)
