"""`python -m tailpack.comparators`: run a Payment replica with another client until SIGTERM or SIGINT.

The handover benchmark compares our consumer with it. TAILPACK_RUNTIME is its rebalance protocol. TAILPACK_CLIENT is
librdkafka, which one thread serves, or java: PaymentConsumer.java replaces this process.
"""

import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import msgspec
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from contracts.clock import now_us
from contracts.connection import Connection
from contracts.preflight import PreflightError, TopicNeed, check_topics
from contracts.progress import PROGRESS_INTERVAL_S
from contracts.rebalance_protocol import RUNTIMES, RebalanceProtocol
from contracts.settings import setting
from contracts.topics import Topic, qualified
from services.common.records import ServiceError
from services.consumer import Event
from services.consumer.partition_queue import OffsetTracker
from services.payment.comparator import ANSWER_S, NO_PLAN, OUTPUT, SHARED, Replica, configure_group, consumer_options
from services.payment.replica import ReplicaSettings
from services.plan_stage import run_replica
from tailpack.errors import TailpackError
from tailpack.local.jars import payment_consumer

log = logging.getLogger(__name__)

DRAIN_S: Final = 2.0  # longest wait for outputs before partitions are revoked
IDLE_WAIT_S: Final = 0.05  # longest poll; it ends at once with an event, but not with a signal
START_DEADLINE_S: Final = 30.0
"""Maximum time to wait for the broker, in seconds. A broker restarts in less time."""
KNOWN: Final = (*RUNTIMES, RebalanceProtocol.LED_EAGER, RebalanceProtocol.LED_COOPERATIVE)
NEEDED: Final = dict.fromkeys((Topic.PAYMENTS_SETTLED, Topic.DEAD_LETTERS, Topic.PROGRESS), 0)


@dataclass(frozen=True, kw_only=True)
class ComparatorSettings(ReplicaSettings):
    """Settings: those of `services.payment`, and the runtime."""

    runtime: RebalanceProtocol = setting(RebalanceProtocol.RANGE, known=KNOWN)
    """The rebalance protocol of the group."""
    client: str = setting("librdkafka", known=("java", "librdkafka"))
    """Client library."""


class Client:
    """A consumer, and the producer of its outputs. One loop calls both."""

    def __init__(self, settings: ReplicaSettings, connection: Connection, runtime: RebalanceProtocol) -> None:
        """Create both clients. Raises ServiceError if the group cannot be configured."""
        if runtime is RebalanceProtocol.KIP848:
            configure_group(connection, settings.heartbeat_s, settings.session_s)
        self._named = partial(qualified, connection.namespace)
        self._replica = Replica(settings)
        self._commit_interval_s = settings.commit_interval_s
        self._commit_s = self._report_s = 0.0  # monotonic times at which each is due
        self._failed: KafkaError | None = None
        self._offsets: dict[int, OffsetTracker] = {}
        """Owned partition → its tracker. A partition that returns gets a new one, which ignores earlier callbacks."""
        self._committing = False
        self._is_eager = runtime in (RebalanceProtocol.RANGE, RebalanceProtocol.LED_EAGER)
        own = connection.librdkafka() | SHARED | OUTPUT | {"client.id": settings.replica}
        self._producer = Producer(own, logger=log)
        options = consumer_options(connection, settings, runtime)
        self._consumer = Consumer(options | {"on_commit": self._on_commit}, logger=log)

    def run(self, stopped: Callable[[], bool]) -> None:
        """Join the group, serve until `stopped`, then commit and leave. Raises ServiceError."""
        self._consumer.subscribe(
            [self._named(Topic.PAYMENTS_REQUESTED)],
            on_assign=self._on_assign,
            on_revoke=self._on_revoke,
            on_lost=self._remove_partitions,  # another member may own them, and serves uncommitted events again
        )
        try:
            self._serve_until(stopped)
        finally:
            self._consumer.close()  # calls on_revoke, then leaves the group
        self._report(stopping=True)
        self._producer.flush(DRAIN_S)

    def _serve_until(self, stopped: Callable[[], bool]) -> None:
        idle = True
        while not stopped():
            self._do_what_is_due()
            if (message := self._consumer.poll(0)) is None:
                idle = True
                message = self._consumer.poll(IDLE_WAIT_S)
            if message is None:
                continue
            if error := message.error():
                _raise_if_final(error)
                continue
            self._serve(message, now_us(), idle=idle)
            idle = False

    def _do_what_is_due(self) -> None:
        """Process acknowledgements, commit and report. Raises ServiceError if an output failed permanently."""
        self._producer.poll(0)
        if self._failed is not None:
            raise ServiceError(f"an output was not written ({self._failed.str()}); the replica must restart")
        now_s = time.monotonic()
        if now_s >= self._report_s:
            self._report_s = now_s + PROGRESS_INTERVAL_S
            self._report()
        offsets = self._committable(tuple(self._offsets)) if now_s >= self._commit_s and not self._committing else []
        if offsets:
            self._commit_s, self._committing = now_s + self._commit_interval_s, True
            self._consumer.commit(offsets=offsets, asynchronous=True)

    def _serve(self, message: Any, received_us: int, *, idle: bool) -> None:
        offsets = self._offsets[message.partition()]
        if message.offset() < (offsets.position or 0):  # librdkafka still had it from an earlier assignment
            return
        offsets.begin(message.offset(), message.offset())
        finish_s = self._replica.begin(message.key(), idle=idle)
        time.sleep(max(0.0, finish_s - time.monotonic()))
        where, stamp_us = (message.topic(), message.partition(), message.offset()), message.timestamp()[1] * 1000
        event = Event(*where, message.key(), message.value(), (), stamp_us, received_us, NO_PLAN)
        topic, key, value = self._replica.finish(event)
        self._send(self._named(topic), key, value, partial(offsets.end, message.offset()))

    def _send(self, topic: str, key: bytes | None, value: bytes, then: Callable[[], object] = bool) -> None:
        def delivered(error: KafkaError | None, _: Any) -> None:
            if error is None:
                then()
            else:
                self._failed = error

        self._producer.produce(topic, value=value, key=key, on_delivery=delivered)

    def _report(self, *, stopping: bool = False) -> None:
        report = self._replica.report(stopping=stopping)
        key, value = report.replica.encode(), msgspec.json.encode(report)
        self._producer.produce(self._named(Topic.PROGRESS), value=value, key=key)  # a lost report does no harm

    def _on_assign(self, consumer: Consumer, added: Sequence[TopicPartition]) -> None:
        added = self._placed(consumer, added) if added else added
        self._offsets |= {each.partition: OffsetTracker(each.offset if each.offset >= 0 else None) for each in added}
        self._replica.member_id = consumer.memberid()
        self._replica.add_partitions(each.partition for each in added)
        self._report()

    def _placed(self, consumer: Consumer, added: Sequence[TopicPartition]) -> Sequence[TopicPartition]:
        """Assign partitions at their committed offsets, and return these."""
        try:
            placed: Sequence[TopicPartition] = consumer.committed([*added], timeout=ANSWER_S)
        except KafkaException as error:  # librdkafka asks again, and assigns the partitions itself
            log.warning("The committed offsets are unknown (%s); events may be served twice", error.args[0].str())
            return added
        (consumer.assign if self._is_eager else consumer.incremental_assign)(placed)
        return placed

    def _on_revoke(self, consumer: Consumer, revoked: Sequence[TopicPartition]) -> None:
        self._producer.flush(DRAIN_S)
        if offsets := self._committable([each.partition for each in revoked]):
            try:
                self._consumer.commit(offsets=offsets, asynchronous=False)
            except KafkaException as error:  # not lost: the events since the last commit are served again
                why = error.args[0].str()
                log.warning("Kafka refused the commit before a handover (%s); its events are served again", why)
        self._remove_partitions(consumer, revoked)

    def _remove_partitions(self, consumer: Consumer, partitions: Sequence[TopicPartition]) -> None:
        for each in partitions:
            self._offsets.pop(each.partition, None)
        self._replica.remove_partitions(each.partition for each in partitions)
        self._report()

    def _committable(self, partitions: Collection[int]) -> list[TopicPartition]:
        topic, owned = self._named(Topic.PAYMENTS_REQUESTED), self._offsets
        done = {partition: owned[partition].committable_offset for partition in partitions if partition in owned}
        return [TopicPartition(topic, partition, at) for partition, at in done.items() if at is not None]

    def _on_commit(self, error: KafkaError | None, offsets: Sequence[TopicPartition]) -> None:
        self._committing = False
        if error is None:
            for each in offsets:
                if each.error is None and each.partition in self._offsets:
                    self._offsets[each.partition].mark_committed(each.offset)
        elif not error.retriable():
            log.info("Kafka refused a commit (%s); it is repeated after the next interval", error.str())


def _raise_if_final(error: KafkaError) -> None:
    """Raise ServiceError for a permanent error. librdkafka retries after other errors."""
    if error.fatal() or error.code() in {KafkaError.GROUP_AUTHORIZATION_FAILED, KafkaError.TOPIC_AUTHORIZATION_FAILED}:
        raise ServiceError(f"the consumer cannot continue ({error.str()}); correct the group's rights or settings")
    log.warning("The consumer cannot read for now: %s; it retries", error.str())


def run(settings: ComparatorSettings, connection: Connection) -> None:
    """Serve until a signal arrives, and finish the current event. Raises ServiceError."""
    signals: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda received, _: signals.append(received))
    topics = NEEDED | {Topic.PAYMENTS_REQUESTED: settings.payment_partitions}
    needed = {qualified(connection.namespace, topic): TopicNeed(count) for topic, count in topics.items()}
    try:
        check_topics(connection, needed, START_DEADLINE_S, lambda: bool(signals))
        if not signals and settings.client == "java":
            command = payment_consumer()
            os.execv(command[0], command)  # noqa: S606  no shell
        elif not signals:
            Client(settings, connection, settings.runtime).run(lambda: bool(signals))
    except (PreflightError, TailpackError) as error:
        raise ServiceError(str(error)) from error
    except KafkaException as error:
        raise ServiceError(f"{settings.runtime} cannot run here ({error.args[0].str()})") from error


if __name__ == "__main__":
    sys.exit(run_replica(ComparatorSettings, run, "payment"))
