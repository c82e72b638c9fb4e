"""`python -m tailpack.comparators`: run a Payment replica with another client until SIGTERM or SIGINT.

The handover benchmark compares our consumer with it. TAILPACK_RUNTIME is its rebalance protocol. TAILPACK_CLIENT is
librdkafka, which one thread serves, or java: PaymentConsumer.java replaces this process. Rules, records and service
times are those of `services.payment`. There are no plans.
"""

import logging
import os
import secrets
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import msgspec
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from autoscaler.live.foreign.broker_settings import ASSIGNMENT_INTERVAL, rejected_intervals
from contracts.clock import now_us
from contracts.connection import Connection
from contracts.preflight import PreflightError, TopicNeed, check_topics
from contracts.progress import PROGRESS_INTERVAL_S, Progress, ReplicaState
from contracts.rebalance_protocol import RUNTIMES, RebalanceProtocol
from contracts.settings import setting
from contracts.topics import AUTO_OFFSET_RESET, Group, Topic, qualified
from services.common.records import ServiceError, encode
from services.consumer import Event
from services.consumer.partition_queue import OffsetTracker
from services.consumer.server import encode_dead_letter
from services.payment.domain import settled_payment
from services.payment.replica import ReplicaSettings, ServerDeadlines, ServiceTimes
from services.plan_stage import run_replica
from tailpack.errors import TailpackError
from tailpack.local.jars import payment_consumer

log = logging.getLogger(__name__)

NO_PLAN: Final = 0  # epoch of an assignment without a plan
UNKNOWN_GENERATION: Final = -1  # librdkafka does not expose the generation
ANSWER_S: Final = 10.0
SHARED: Final = {"retry.backoff.ms": 20, "reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 1000}
OUTPUT: Final = {
    "enable.idempotence": True,
    "linger.ms": 0,
    "message.timeout.ms": 120_000,  # longest wait of an output for a leader; its input is not committed
}
INPUT: Final = {
    "enable.auto.offset.store": False,  # an event's offset is stored, and then committed, once its output is written
    "auto.offset.reset": AUTO_OFFSET_RESET,
    "fetch.wait.max.ms": 50,  # a pending fetch at a handover delays the first fetch of the new owner this long
    "max.poll.interval.ms": 24 * 3600 * 1000,  # a slow event must not end the membership
    # 2.5 s of work at 5 ms. With the default, 100,000, a replica fetches events that another replica will serve.
    "queued.min.messages": 500,
    # Pause before the next fetch when the queue is full. The default, 1000, would empty such a short queue.
    "fetch.queue.backoff.ms": 10,
    "fetch.error.backoff.ms": 20,
    # librdkafka's threads sleep up to a second: after an incremental rebalance they do not fetch the partitions
    # that did not move (0.9 s measured). A metadata refresh wakes them.
    "topic.metadata.refresh.interval.ms": 100,
}
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
            _configure_group(connection, settings)
        self._named = partial(qualified, connection.namespace)
        self._name, self._times, self._deadlines = settings.replica, ServiceTimes(settings), ServerDeadlines()
        self._incarnation = f"{now_us():016d}-{secrets.token_hex(4)}"
        self._processed = self._rebalances = 0
        self._state, self._member_id = ReplicaState.WARM, ""
        self._report_s = 0.0  # monotonic time at which the next report is due
        self._failed: KafkaError | None = None
        self._offsets: dict[int, OffsetTracker] = {}
        """Owned partition → its tracker. A partition that returns gets a new one, which ignores earlier callbacks."""
        self._is_eager = runtime in (RebalanceProtocol.RANGE, RebalanceProtocol.LED_EAGER)
        own = connection.librdkafka() | SHARED | OUTPUT | {"client.id": settings.replica}
        self._producer = Producer(own, logger=log)
        self._consumer = Consumer(consumer_options(connection, settings, runtime), logger=log)

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
        self._state = ReplicaState.STOPPING
        self._report()
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
        """Process acknowledgements, and report. Raises ServiceError if an output failed permanently."""
        self._producer.poll(0)
        if self._failed is not None:
            raise ServiceError(f"an output was not written ({self._failed.str()}); the replica must restart")
        now_s = time.monotonic()
        if now_s >= self._report_s:
            self._report_s = now_s + PROGRESS_INTERVAL_S
            self._report()

    def _serve(self, message: Any, received_us: int, *, idle: bool) -> None:
        offsets = self._offsets[message.partition()]
        if message.offset() < (offsets.position or 0):  # librdkafka still had it from an earlier assignment
            return
        offsets.begin(message.offset(), message.offset())
        service_time_s = self._times.service_time_s(message.key(), now_us())
        finish_s = self._deadlines.begin(time.monotonic(), service_time_s, idle=idle)
        time.sleep(max(0.0, finish_s - time.monotonic()))
        where, stamp_us = (message.topic(), message.partition(), message.offset()), message.timestamp()[1] * 1000
        event = Event(*where, message.key(), message.value(), (), stamp_us, received_us, NO_PLAN)
        topic, key, value = self._output(event)
        self._processed += 1

        def delivered(error: KafkaError | None, _: Any) -> None:
            self._failed = error or self._failed
            if error is None:
                offsets.end(message.offset())
                if offsets.position is not None and self._offsets.get(message.partition()) is offsets:
                    done = TopicPartition(message.topic(), message.partition(), offsets.position)
                    self._consumer.store_offsets(offsets=[done])

        self._producer.produce(self._named(topic), value=value, key=key, on_delivery=delivered)

    def _output(self, event: Event) -> tuple[Topic, bytes | None, bytes]:
        """Return topic (without the namespace), key and value of the event's output."""
        try:
            settled = settled_payment(event, self._name, now_us())
            return Topic.PAYMENTS_SETTLED, settled.order_id.encode(), encode(settled)
        except Exception as error:  # no record may stop the replica
            return (Topic.DEAD_LETTERS, *encode_dead_letter(Group.PAYMENT, event, error, now_us()))

    def _report(self) -> None:
        report = Progress(
            replica=self._name, incarnation=self._incarnation, pid=os.getpid(), member_id=self._member_id,
            generation=UNKNOWN_GENERATION, epoch=NO_PLAN, assigned_epoch=NO_PLAN, state=self._state,
            partitions=tuple(sorted(self._offsets)), positions={}, processed=self._processed,
            busy_us=round(self._deadlines.busy_s * 1e6), rebalances=self._rebalances, at_us=now_us(),
            host=socket.gethostname(),
        )  # fmt: skip
        key, value = report.replica.encode(), msgspec.json.encode(report)
        self._producer.produce(self._named(Topic.PROGRESS), value=value, key=key)  # a lost report does no harm

    def _on_assign(self, consumer: Consumer, added: Sequence[TopicPartition]) -> None:
        added = self._placed(consumer, added) if added else added
        self._offsets |= {each.partition: OffsetTracker(each.offset if each.offset >= 0 else None) for each in added}
        self._member_id = consumer.memberid()
        self._rebalances += 1
        if self._offsets:
            self._state = ReplicaState.MEMBER
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
        self._producer.flush(DRAIN_S)  # librdkafka then commits what is done
        self._remove_partitions(consumer, revoked)

    def _remove_partitions(self, consumer: Consumer, partitions: Sequence[TopicPartition]) -> None:
        for each in partitions:
            self._offsets.pop(each.partition, None)
        self._rebalances += 1
        self._report()


def consumer_options(connection: Connection, settings: ReplicaSettings, runtime: RebalanceProtocol) -> dict[str, Any]:
    """Return the options of the consumer, chosen for low latency."""
    options = connection.librdkafka() | SHARED | INPUT
    options |= {"client.id": settings.replica, "group.id": qualified(connection.namespace, Group.PAYMENT)}
    options["auto.commit.interval.ms"] = round(settings.commit_interval_s * 1000)
    if runtime is RebalanceProtocol.KIP848:
        return options | {"group.protocol": "consumer"}
    return options | {
        "partition.assignment.strategy": "range" if runtime in ("range", "led-eager") else "cooperative-sticky",
        "heartbeat.interval.ms": round(settings.heartbeat_s * 1000),
        "session.timeout.ms": round(settings.session_s * 1000),
    }


def _configure_group(connection: Connection, settings: ReplicaSettings) -> None:
    """Set the intervals of the KIP-848 group. Raises ServiceError if the broker rejects one that it knows."""
    try:
        rejected = rejected_intervals(connection, qualified(connection.namespace, Group.PAYMENT), settings)
    except TimeoutError as error:
        raise ServiceError(f"{connection.bootstrap_servers} does not answer; start it, and try again") from error
    if wrong := [f"{name} ({why})" for name, why in rejected.items() if ASSIGNMENT_INTERVAL not in name]:
        remedy = "raise heartbeat_s or session_s, or lower the broker's minimum"
        raise ServiceError(f"the group cannot be set up for KIP-848: {', '.join(wrong)}; {remedy}")


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
