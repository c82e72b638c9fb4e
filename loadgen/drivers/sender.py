"""Sends events to Kafka by a librdkafka producer. Events wait while a broker is down; confirmed events are counted.

A call that waits in librdkafka's C code would block all greenlets. So after `connect`, no call waits.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, Message, Producer
from prometheus_client.core import Metric

from contracts.connection import Connection
from contracts.metrics import counter, gauge
from contracts.preflight import PreflightError, TopicNeed, check_topics
from loadgen.orders import Record
from loadgen.pacing import Pacer
from loadgen.result import lateness_percentile_us

MESSAGE_TIMEOUT_MS: Final = 600_000
"""Time after which an event fails, ms. It is longer than any restart of a broker."""
PRODUCER: Final[dict[str, Any]] = {
    "acks": "all",
    "enable.idempotence": True,  # order per partition, and no duplicates, across retries
    "partitioner": "murmur2_random",  # keys go to the same partitions as with the Java clients, aiokafka and Faust
    "message.timeout.ms": MESSAGE_TIMEOUT_MS,
    "queue.buffering.max.messages": 1_000_000,
    "queue.buffering.max.kbytes": 131_072,
    "reconnect.backoff.max.ms": 1_000,
    "topic.metadata.refresh.interval.ms": 10_000,
    "log_level": 2,  # errors are reported by delivery reports and error_cb
}


class GeneratorError(Exception):
    """The generator cannot start or continue. The message has the problem, its place and a remedy."""


Pause = Callable[[float], None]
"""Sleeps for a number of seconds, in which other greenlets run."""
Settled = Callable[[int, float, str | None], None]
"""Called when an event is confirmed or has failed: bytes of its value, seconds since its send, error or None."""


class Sender:
    """Sends records to one topic and counts the outcomes."""

    def __init__(self, connection: Connection, topic: str, linger_ms: float, *, pause: Pause, settled: Settled) -> None:
        self._pause, self._on_settled = pause, settled
        self._connection, self._topic = connection, topic
        self._address = connection.bootstrap_servers
        self.produced = 0
        self.acknowledged = 0
        self.failed = 0
        self.first_error: str | None = None
        self._fatal: KafkaError | None = None
        try:
            own = {"linger.ms": linger_ms, "error_cb": self._on_error}
            self._producer = Producer(PRODUCER | connection.librdkafka() | own)
        except KafkaException as error:
            raise GeneratorError(f"cannot create a Kafka client for {self._address}: {error.args[0].str()}") from error

    def connect(self, partitions: int, deadline_s: float) -> None:
        """Wait until the topic exists with this number of partitions. Raises GeneratorError."""
        try:
            check_topics(self._connection, {self._topic: TopicNeed(partitions)}, deadline_s)
        except PreflightError as error:
            raise GeneratorError(str(error)) from error
        with suppress(KafkaException):
            self._producer.list_topics(self._topic, deadline_s)  # so that the first event does not wait for this answer

    def send(self, record: Record) -> None:
        """Pass one record to librdkafka. Wait only while its queue is full. Other greenlets run meanwhile."""
        key, value, headers, partition = record
        while True:
            try:
                self._producer.produce(
                    self._topic, value, key, partition, headers=headers, on_delivery=self._on_delivery
                )
                break
            except BufferError:
                self._producer.poll(0)
                self._pause(0.01)
        self.produced += 1

    def poll(self) -> None:
        """Process delivery reports without waiting. Raises GeneratorError after a fatal error of the producer."""
        self._producer.poll(0)
        if self._fatal is not None:
            problem = f"the producer has a fatal error: {self._fatal.str()}"
            raise GeneratorError(f"Kafka at {self._address}: {problem}; check the brokers, then start the run again")

    def drain(self, deadline_s: float) -> None:
        """Wait for outstanding reports. Events not confirmed at the deadline are dropped and count as failed."""
        deadline = time.monotonic() + deadline_s
        while self._outstanding and time.monotonic() < deadline and self._fatal is None:
            self._producer.poll(0)
            self._pause(0.005)
        if self._outstanding:
            self._producer.purge()
            self._producer.poll(0)
            self.failed += self._outstanding
            self.first_error = self.first_error or f"not confirmed within {deadline_s:g} s of the last send"

    @property
    def _outstanding(self) -> int:
        return self.produced - self.acknowledged - self.failed

    def _on_delivery(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            self.acknowledged += 1
        else:
            self.failed += 1
            self.first_error = self.first_error or error.str()
        self._on_settled(len(message), message.latency() or 0.0, None if error is None else error.str())

    def _on_error(self, error: KafkaError) -> None:
        if error.fatal():
            self._fatal = error
            self.first_error = self.first_error or error.str()


SAMPLE = 1000
"""Number of events in the lateness metric."""

SENT = counter("tailpack_generator_sent_total", "events", "Events passed to the Kafka client")
ACKNOWLEDGED = counter("tailpack_generator_acknowledged_total", "events", "Events that the brokers have confirmed")
FAILED = counter("tailpack_generator_failed_total", "events", "Events that the Kafka client gave up")
LATENESS = gauge(
    "tailpack_generator_lateness_p99_seconds", "seconds", f"Send time − scheduled time, p99 of the last {SAMPLE} events"
)
LIMIT = gauge("tailpack_generator_lateness_limit_seconds", "seconds", "Highest p99 of a valid run: 5 % of W")


class GeneratorMetrics:
    """The generator's metrics, a prometheus-client collector. pacer: returns None before the load begins."""

    def __init__(self, sender: Sender, pacer: Callable[[], Pacer | None], limit_us: int) -> None:
        self._sender, self._pacer, self._limit_us = sender, pacer, limit_us

    def collect(self) -> Iterator[Metric]:
        """Yield the current metrics."""
        pacer = self._pacer()
        late_us = None if pacer is None else lateness_percentile_us(pacer.lateness_us[-SAMPLE:], 0.99)
        values = {
            SENT: self._sender.produced,
            ACKNOWLEDGED: self._sender.acknowledged,
            FAILED: self._sender.failed,
            LATENESS: (late_us or 0) / 1e6,
            LIMIT: self._limit_us / 1e6,
        }
        for declared, value in values.items():
            yield declared.of(value)
