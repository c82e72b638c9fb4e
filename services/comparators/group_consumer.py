"""A replica that owns partitions: the loop and the rebalance callbacks of cooperative-sticky and KIP-848."""

import logging
from collections.abc import Collection, Sequence
from functools import partial
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from contracts.clock import now_us
from contracts.connection import Connection
from contracts.delivery import Delivery
from contracts.topics import Topic, qualified
from services.common.records import ServiceError
from services.comparators import librdkafka
from services.comparators.groups import configure_group
from services.comparators.librdkafka import DRAIN_S, Server
from services.comparators.replica import Stop
from services.consumer.offsets import Offsets
from services.payment.settings import ReplicaSettings

log = logging.getLogger(__name__)


def run(settings: ReplicaSettings, connection: Connection, stop: Stop, runtime: Delivery) -> None:
    """Serve as one member of the group until asked to stop."""
    options = librdkafka.group_consumer(connection, settings)
    if runtime is Delivery.KIP848:
        configure_group(connection, runtime, settings.heartbeat_s, settings.session_s)
        options |= {"group.protocol": "consumer"}
    else:
        options |= {
            "partition.assignment.strategy": "cooperative-sticky",
            "heartbeat.interval.ms": round(settings.heartbeat_s * 1000),
            "session.timeout.ms": round(settings.session_s * 1000),
        }
    GroupConsumer(settings, connection, options).run(stop)


class GroupConsumer:
    """One member of the Payment group, in one thread: events, callbacks, commits and reports follow one another."""

    def __init__(self, settings: ReplicaSettings, connection: Connection, options: dict[str, Any]) -> None:
        self._topic = qualified(connection.namespace, Topic.PAYMENTS_REQUESTED)
        self._server = Server(settings, connection)
        self._server.duties.add(settings.commit_interval_s, self._commit_soon)
        self._offsets: dict[int, Offsets] = {}
        """Of each partition owned. One that comes back begins anew: late news of before do not count for it."""
        self._committing = False
        self._consumer = Consumer(options | {"on_commit": self._on_commit}, logger=log)

    def run(self, stop: Stop) -> None:
        """Join the group and serve until asked to stop; then commit and leave. Raises ServiceError."""
        self._server.report()
        self._consumer.subscribe(
            [self._topic], on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_lost
        )
        try:
            self._serve(stop)
        finally:
            self._consumer.close()  # calls on_revoke, then leaves the group
        self._server.end()

    def _serve(self, stop: Stop) -> None:
        idle = True
        while not stop.requested:
            message = self._consumer.poll(0)
            if message is None:
                idle = True
                message = self._consumer.poll(self._server.idle_wait_s())
            if message is None:
                continue
            if error := message.error():
                _raise_if_final(error)
                continue
            offsets = self._offsets[message.partition()]
            offsets.begin([message.offset()])
            self._server.serve(message, now_us(), partial(offsets.end, [message.offset()]), idle=idle)
            idle = False

    def _on_assign(self, consumer: Consumer, taken: Sequence[TopicPartition]) -> None:
        consumer.incremental_assign(list(taken))
        self._offsets |= {each.partition: Offsets() for each in taken}
        self._server.replica.member_id = consumer.memberid()
        self._server.replica.rebalances += 1
        self._server.replica.taken(each.partition for each in taken)
        self._server.report()

    def _on_revoke(self, consumer: Consumer, revoked: Sequence[TopicPartition]) -> None:
        partitions = {each.partition for each in revoked}
        self._server.output.drain(DRAIN_S)
        self._commit_now(self._committable(partitions))
        self._give_up(consumer, revoked)

    def _on_lost(self, consumer: Consumer, lost: Sequence[TopicPartition]) -> None:
        # Someone else may own them already: what is not committed is theirs to serve again.
        self._give_up(consumer, lost)

    def _give_up(self, consumer: Consumer, partitions: Sequence[TopicPartition]) -> None:
        for each in partitions:
            self._offsets.pop(each.partition, None)
        self._server.replica.rebalances += 1
        self._server.replica.given_up(each.partition for each in partitions)
        consumer.incremental_unassign(list(partitions))
        self._server.report()

    def _committable(self, partitions: Collection[int]) -> list[TopicPartition]:
        """Return the offsets of `partitions` that the group does not have yet."""
        owned = [(partition, self._offsets[partition]) for partition in partitions if partition in self._offsets]
        return [
            TopicPartition(self._topic, partition, at)
            for partition, one in owned
            if (at := one.committable) is not None
        ]

    def _commit_soon(self) -> None:
        offsets = self._committable(self._offsets)
        if offsets and not self._committing:
            self._committing = True
            self._consumer.commit(offsets=offsets, asynchronous=True)

    def _commit_now(self, offsets: list[TopicPartition]) -> None:
        if not offsets:
            return
        try:
            self._consumer.commit(offsets=offsets, asynchronous=False)
        except KafkaException as refused:  # nothing is lost: the events since the last commit are served again
            log.warning("the commit before a handover was refused: %s", refused.args[0].str())

    def _on_commit(self, error: KafkaError | None, offsets: Sequence[TopicPartition]) -> None:
        self._committing = False
        if error is None:
            for each in offsets:
                if each.error is None and each.partition in self._offsets:
                    self._offsets[each.partition].committed(each.offset)
        elif not error.retriable():
            log.info("commit refused (%s); tried again at the next interval", error.str())


def _raise_if_final(error: KafkaError) -> None:
    """Raise ServiceError for what cannot pass; what librdkafka mends itself is logged."""
    if error.fatal() or error.code() in {KafkaError.GROUP_AUTHORIZATION_FAILED, KafkaError.TOPIC_AUTHORIZATION_FAILED}:
        raise ServiceError(f"the consumer cannot go on ({error.str()}); correct the group's rights or settings")
    log.warning("consuming is interrupted: %s", error.str())
