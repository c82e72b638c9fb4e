"""One member of the Payment group on librdkafka: events, callbacks, commits and reports in one thread."""

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

DRAIN_S: Final = 2.0  # longest wait for outputs before partitions are revoked
IDLE_WAIT_S: Final = 0.05  # longest poll; it ends at once with an event, but not with a signal
ANSWER_S: Final = 10.0
SHARED: Final = {"retry.backoff.ms": 20, "reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 1000}
OUTPUT: Final = {
    "enable.idempotence": True,
    "linger.ms": 0,
    "message.timeout.ms": 120_000,  # longest wait of an output for a leader; its input is not committed
}
INPUT: Final = {
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
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


def consumer_options(connection: Connection, settings: ReplicaSettings, runtime: RebalanceProtocol) -> dict[str, Any]:
    """Return the options of the consumer, chosen for low latency."""
    options = connection.librdkafka() | SHARED | INPUT
    options |= {"client.id": settings.replica, "group.id": qualified(connection.namespace, Group.PAYMENT)}
    if runtime is RebalanceProtocol.KIP848:
        return options | {"group.protocol": "consumer"}
    return options | {
        "partition.assignment.strategy": "cooperative-sticky",
        "heartbeat.interval.ms": round(settings.heartbeat_s * 1000),
        "session.timeout.ms": round(settings.session_s * 1000),
    }


def configure_group(connection: Connection, heartbeat_s: float, session_s: float) -> None:
    """Set the broker's KIP-848 options of the Payment group (idempotent). Options unknown to the broker are left out.

    Raises ServiceError if the broker rejects one (below its minimum, such as
    group.consumer.min.heartbeat.interval.ms) or does not answer.
    """
    options = {
        "consumer.heartbeat.interval.ms": round(heartbeat_s * 1000),
        "consumer.session.timeout.ms": round(session_s * 1000),
        "consumer.assignment.interval.ms": 0,  # since Kafka 4.3 the default is a second between two assignments
    }
    admin = AdminClient(connection.librdkafka(), logger=log)
    group = qualified(connection.namespace, Group.PAYMENT)
    resource = ConfigResource(ConfigResource.Type.GROUP, group)
    try:
        (described,) = admin.describe_configs([resource], request_timeout=ANSWER_S).values()
        for name in options.keys() & described.result(ANSWER_S).keys():
            entry = ConfigEntry(name, str(options[name]), incremental_operation=AlterConfigOpType.SET)
            resource.add_incremental_config(entry)
        for answer in admin.incremental_alter_configs([resource], request_timeout=ANSWER_S).values():
            answer.result(ANSWER_S)
    except (KafkaException, TimeoutError) as error:
        why = error.args[0].str() if isinstance(error, KafkaException) else "no answer"
        raise ServiceError(
            f"group {group} on {connection.bootstrap_servers} cannot be set up for KIP-848 ({why}); raise the setting "
            "or lower the broker's minimum"
        ) from error


class Client:
    """The consumer and the producer of its outputs, driven by one loop."""

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
        """Owned partition → its tracker. A returning partition gets a new one, which ignores old callbacks."""
        self._committing = False
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
            on_lost=self._remove_partitions,  # another member may own them: uncommitted events are served again there
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
            raise ServiceError(f"an output was not written ({self._failed.str()}); restart it when Kafka is healthy")
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

    def _on_assign(self, consumer: Consumer, added: Sequence[TopicPartition]) -> None:
        consumer.incremental_assign(list(added))
        self._offsets |= {each.partition: OffsetTracker() for each in added}
        self._replica.member_id = consumer.memberid()
        self._replica.add_partitions(each.partition for each in added)
        self._report()

    def _on_revoke(self, consumer: Consumer, revoked: Sequence[TopicPartition]) -> None:
        self._producer.flush(DRAIN_S)
        if offsets := self._committable([each.partition for each in revoked]):
            try:
                self._consumer.commit(offsets=offsets, asynchronous=False)
            except KafkaException as error:  # no loss: the events since the last commit are served again
                log.warning("Commit before a handover refused: %s; its events are served again", error.args[0].str())
        self._remove_partitions(consumer, revoked)

    def _remove_partitions(self, consumer: Consumer, partitions: Sequence[TopicPartition]) -> None:
        for each in partitions:
            self._offsets.pop(each.partition, None)
        self._replica.remove_partitions(each.partition for each in partitions)
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
            log.info("Commit refused (%s); the next interval retries it", error.str())


def _raise_if_final(error: KafkaError) -> None:
    """Raise ServiceError for a permanent error; librdkafka retries the others itself."""
    if error.fatal() or error.code() in {KafkaError.GROUP_AUTHORIZATION_FAILED, KafkaError.TOPIC_AUTHORIZATION_FAILED}:
        raise ServiceError(f"the consumer cannot go on ({error.str()}); correct the group's rights or settings")
    log.warning("Consuming is interrupted: %s", error.str())
