"""One member of the Payment group on librdkafka, in one thread: events, callbacks, commits and reports in turn."""

import logging
import time
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any, Final

import msgspec
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource

from contracts.clock import now_us
from contracts.connection import Connection
from contracts.progress import PROGRESS_INTERVAL_S
from contracts.rebalance_protocol import RebalanceProtocol
from contracts.topics import AUTO_OFFSET_RESET, Group, Topic, qualified
from services.common.records import ServiceError
from services.comparators.replica import NO_PLAN, Replica
from services.consumer import Event
from services.consumer.partition_queue import OffsetTracker
from services.payment.replica import ReplicaSettings

log = logging.getLogger(__name__)

DRAIN_S: Final = 2.0  # how long outputs are waited for before partitions are given away
IDLE_WAIT_S: Final = 0.05  # a poll ends as soon as there is an event; a signal is noticed after it
ANSWER_S: Final = 10.0
SHARED: Final = {"retry.backoff.ms": 20, "reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 1000}
OUTPUT: Final = {
    "enable.idempotence": True,
    "linger.ms": 0,
    "message.timeout.ms": 120_000,  # an output may wait so long for a leader; none of it has been committed
}
INPUT: Final = {
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "auto.offset.reset": AUTO_OFFSET_RESET,
    "fetch.wait.max.ms": 50,  # a fetch under way at a handover delays the new owner's first one this long
    "max.poll.interval.ms": 24 * 3600 * 1000,  # a slow event must not cost the membership
    # 2.5 s of work at 5 ms. The default, 100,000, makes a replica fetch events that it gives away unread.
    "queued.min.messages": 500,
    # Pause before a partition is fetched again once the queue is full; the default, 1000, empties so short a queue.
    "fetch.queue.backoff.ms": 10,
    "fetch.error.backoff.ms": 20,
    # librdkafka's threads sleep up to a second where nothing wakes them: after an incremental rebalance they
    # do not fetch partitions that did not move for so long (0.9 s measured). A metadata refresh wakes them.
    "topic.metadata.refresh.interval.ms": 100,
}


def consumer_options(connection: Connection, settings: ReplicaSettings, runtime: RebalanceProtocol) -> dict[str, Any]:
    """Return what the consumer takes; settings are as one chooses them for low latency."""
    known = connection.librdkafka() | SHARED | INPUT
    known |= {"client.id": settings.replica, "group.id": qualified(connection.namespace, Group.PAYMENT)}
    if runtime is RebalanceProtocol.KIP848:
        return known | {"group.protocol": "consumer"}
    return known | {
        "partition.assignment.strategy": "cooperative-sticky",
        "heartbeat.interval.ms": round(settings.heartbeat_s * 1000),
        "session.timeout.ms": round(settings.session_s * 1000),
    }


def configure_group(connection: Connection, heartbeat_s: float, session_s: float) -> None:
    """Set on the broker what KIP-848 wants of the Payment group. Doing it again changes nothing.

    Settings that the broker does not know yet are left out. Raises ServiceError when it refuses one (below its
    minimum, such as group.consumer.min.heartbeat.interval.ms) or does not answer.
    """
    wanted = {
        "consumer.heartbeat.interval.ms": round(heartbeat_s * 1000),
        "consumer.session.timeout.ms": round(session_s * 1000),
        "consumer.assignment.interval.ms": 0,  # since Kafka 4.3 the broker would wait a second between two assignments
    }
    admin = AdminClient(connection.librdkafka(), logger=log)
    group = qualified(connection.namespace, Group.PAYMENT)
    resource = ConfigResource(ConfigResource.Type.GROUP, group)
    try:
        (known,) = admin.describe_configs([resource], request_timeout=ANSWER_S).values()
        for name in wanted.keys() & known.result(ANSWER_S).keys():
            entry = ConfigEntry(name, str(wanted[name]), incremental_operation=AlterConfigOpType.SET)
            resource.add_incremental_config(entry)
        for answer in admin.incremental_alter_configs([resource], request_timeout=ANSWER_S).values():
            answer.result(ANSWER_S)
    except (KafkaException, TimeoutError) as refused:
        why = refused.args[0].str() if isinstance(refused, KafkaException) else "no answer"
        raise ServiceError(
            f"group {group} on {connection.bootstrap_servers} cannot be set up for KIP-848 ({why}); raise the setting "
            "or lower the broker's minimum"
        ) from refused


class Client:
    """The consumer, the producer of its outputs, and what both do at which time."""

    def __init__(self, settings: ReplicaSettings, connection: Connection, runtime: RebalanceProtocol) -> None:
        """Make both clients. Raises ServiceError: the group cannot be set up."""
        if runtime is RebalanceProtocol.KIP848:
            configure_group(connection, settings.heartbeat_s, settings.session_s)
        self._named = partial(qualified, connection.namespace)
        self._replica = Replica(settings)
        self._commit_interval_s = settings.commit_interval_s
        self._commit_s = self._report_s = 0.0  # when each is due, monotonic
        self._failed: KafkaError | None = None
        self._offsets: dict[int, OffsetTracker] = {}
        """Of each partition owned. One that comes back begins anew: late news of before do not count for it."""
        self._committing = False
        own = connection.librdkafka() | SHARED | OUTPUT | {"client.id": settings.replica}
        self._producer = Producer(own, logger=log)
        options = consumer_options(connection, settings, runtime)
        self._consumer = Consumer(options | {"on_commit": self._on_commit}, logger=log)

    def run(self, stopped: Callable[[], bool]) -> None:
        """Join the group and serve until `stopped`; then commit and leave. Raises ServiceError."""
        self._consumer.subscribe(
            [self._named(Topic.PAYMENTS_REQUESTED)],
            on_assign=self._on_assign,
            on_revoke=self._on_revoke,
            on_lost=self._give_up,  # another member may own them: what is not committed is served again there
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
        """Take acknowledgements, commit and report. Raises ServiceError when an output failed for good."""
        self._producer.poll(0)
        if self._failed is not None:
            raise ServiceError(f"an output was not written ({self._failed.str()}); restart me once Kafka is well")
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
        offsets.begin([message.offset()])
        finish_s = self._replica.begin(message.key(), idle=idle)
        time.sleep(max(0.0, finish_s - time.monotonic()))
        where, stamp_us = (message.topic(), message.partition(), message.offset()), message.timestamp()[1] * 1000
        event = Event(*where, message.key(), message.value(), (), stamp_us, received_us, NO_PLAN)
        topic, key, value = self._replica.finish(event)
        self._send(self._named(topic), key, value, partial(offsets.end, [message.offset()]))

    def _send(self, topic: str, key: bytes | None, value: bytes, then: Callable[[], object] = bool) -> None:
        def delivered(error: KafkaError | None, _: Any) -> None:
            if error is None:
                then()
            else:
                self._failed = error

        self._producer.produce(topic, value=value, key=key, on_delivery=delivered)

    def _report(self, *, stopping: bool = False) -> None:
        report = self._replica.report(stopping=stopping)
        self._send(self._named(Topic.PROGRESS), report.replica.encode(), msgspec.json.encode(report))

    def _on_assign(self, consumer: Consumer, taken: Sequence[TopicPartition]) -> None:
        consumer.incremental_assign(list(taken))
        self._offsets |= {each.partition: OffsetTracker() for each in taken}
        self._replica.member_id = consumer.memberid()
        self._replica.taken(each.partition for each in taken)
        self._report()

    def _on_revoke(self, consumer: Consumer, revoked: Sequence[TopicPartition]) -> None:
        self._producer.flush(DRAIN_S)
        if offsets := self._committable([each.partition for each in revoked]):
            try:
                self._consumer.commit(offsets=offsets, asynchronous=False)
            except KafkaException as refused:  # nothing is lost: the events since the last commit are served again
                log.warning("the commit before a handover was refused: %s", refused.args[0].str())
        self._give_up(consumer, revoked)

    def _give_up(self, consumer: Consumer, partitions: Sequence[TopicPartition]) -> None:
        for each in partitions:
            self._offsets.pop(each.partition, None)
        self._replica.given_up(each.partition for each in partitions)
        consumer.incremental_unassign(list(partitions))
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
            log.info("commit refused (%s); tried again at the next interval", error.str())


def _raise_if_final(error: KafkaError) -> None:
    """Raise ServiceError for an error that cannot pass; librdkafka retries the others itself."""
    if error.fatal() or error.code() in {KafkaError.GROUP_AUTHORIZATION_FAILED, KafkaError.TOPIC_AUTHORIZATION_FAILED}:
        raise ServiceError(f"the consumer cannot go on ({error.str()}); correct the group's rights or settings")
    log.warning("consuming is interrupted: %s", error.str())
