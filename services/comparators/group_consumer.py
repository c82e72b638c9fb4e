"""A replica that owns partitions: the loop and the rebalance callbacks of cooperative-sticky and KIP-848."""

import logging
from collections.abc import Sequence
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from contracts.clock import now_us
from contracts.connection import Connection
from contracts.topics import Topic, qualified
from services.common.errors import ServiceError
from services.comparators.offsets import Offsets
from services.comparators.server import DRAIN_S, Server
from services.comparators.stop import Stop
from services.payment.settings import ReplicaSettings

log = logging.getLogger(__name__)


class GroupConsumer:
    """One member of the Payment group, in one thread: events, callbacks, commits and reports follow one another."""

    def __init__(self, settings: ReplicaSettings, connection: Connection, options: dict[str, Any]) -> None:
        self._topic = qualified(connection.namespace, Topic.PAYMENTS_REQUESTED)
        self._server = Server(settings, connection)
        self._server.duties.add(settings.commit_interval_s, self._commit_soon)
        self._offsets = Offsets(self._topic)
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
                _judge(error)
                continue
            served = self._offsets.serving(message.partition(), message.offset())
            self._server.serve(message, now_us(), served, idle=idle)
            idle = False

    def _on_assign(self, consumer: Consumer, taken: Sequence[TopicPartition]) -> None:
        consumer.incremental_assign(list(taken))
        self._offsets.open(each.partition for each in taken)
        self._server.tally.member_id = consumer.memberid()
        self._server.tally.rebalances += 1
        self._server.tally.taken(each.partition for each in taken)
        self._server.report()

    def _on_revoke(self, consumer: Consumer, revoked: Sequence[TopicPartition]) -> None:
        partitions = {each.partition for each in revoked}
        self._server.output.drain(DRAIN_S)
        self._commit_now(self._offsets.committable(partitions))
        self._give_up(consumer, revoked)

    def _on_lost(self, consumer: Consumer, lost: Sequence[TopicPartition]) -> None:
        # Someone else may own them already: what is not committed is theirs to serve again.
        self._give_up(consumer, lost)

    def _give_up(self, consumer: Consumer, partitions: Sequence[TopicPartition]) -> None:
        self._offsets.close(each.partition for each in partitions)
        self._server.tally.rebalances += 1
        self._server.tally.given_up(each.partition for each in partitions)
        consumer.incremental_unassign(list(partitions))
        self._server.report()

    def _commit_soon(self) -> None:
        offsets = self._offsets.committable()
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
            self._offsets.committed(offsets)
        elif not error.retriable():
            log.info("commit refused (%s); tried again at the next interval", error.str())


def _judge(error: KafkaError) -> None:
    """Raise ServiceError for what cannot pass; what librdkafka mends itself is logged."""
    if error.fatal() or error.code() in {KafkaError.GROUP_AUTHORIZATION_FAILED, KafkaError.TOPIC_AUTHORIZATION_FAILED}:
        raise ServiceError(f"the consumer cannot go on ({error.str()}); correct the group's rights or settings")
    log.warning("consuming is interrupted: %s", error.str())
