"""Runtime `share`: a share group. Any replica takes events of any partition, at the price of their order."""

import json
import logging
from collections import deque
from functools import partial
from typing import Any, Final

from confluent_kafka import AcknowledgeType, KafkaException, ShareConsumer

from contracts.clock import now_us
from contracts.connection import Connection
from contracts.delivery import Delivery
from contracts.topics import Topic, qualified
from services.common.records import ServiceError
from services.comparators.groups import configure_group
from services.comparators.librdkafka import DRAIN_S, Server, any_consumer
from services.comparators.replica import Stop
from services.payment.settings import ReplicaSettings

log = logging.getLogger(__name__)

RECORDS: Final = 1
"""Asked for at once. The broker hands out whole batches of the producer all the same; asking for more would pile up
several of them at one replica while others idle."""
STATISTICS_MS: Final = 250
"""The client tells of its assignment in its statistics only."""


def run(settings: ReplicaSettings, connection: Connection, stop: Stop, runtime: Delivery) -> None:
    """Serve as one member of the group until asked to stop. Raises ServiceError."""
    configure_group(connection, runtime, settings.heartbeat_s, settings.session_s)
    try:
        ShareReplica(settings, connection).run(stop)
    except KafkaException as ended:
        raise ServiceError(f"the share consumer cannot go on ({ended.args[0].str()}); restart me") from ended


class ShareReplica:
    """One member of the share group, in one thread. Each record is acknowledged once its output is written."""

    def __init__(self, settings: ReplicaSettings, connection: Connection) -> None:
        self._server = Server(settings, connection)
        self._server.duties.add(settings.commit_interval_s, self._commit)
        self._topic = qualified(connection.namespace, Topic.PAYMENTS_REQUESTED)
        self._written: deque[Any] = deque()
        """Records whose output has been acknowledged, and which the group does not know yet to be done."""
        self._consumer = ShareConsumer(
            any_consumer(connection, settings)
            | {
                "share.acknowledgement.mode": "explicit",
                "max.poll.records": RECORDS,
                "statistics.interval.ms": STATISTICS_MS,
                "stats_cb": self._on_statistics,
            },
            logger=log,
        )

    def run(self, stop: Stop) -> None:
        """Join the group and serve until asked to stop; what is not served by then is released to the others."""
        self._server.report()
        self._consumer.set_acknowledgement_commit_callback(_on_committed)
        self._consumer.subscribe([self._topic])
        try:
            while not stop.requested:
                self._serve(self._consumer.poll(self._server.idle_wait_s()), stop)
        finally:
            self._consumer.close()  # commits acknowledgements, then leaves the group
        self._server.end()

    def _serve(self, records: Any, stop: Stop) -> None:
        received_us = now_us()
        idle = True  # the records of a poll are asked for when the last of the poll before is done
        for record in records:
            if error := record.error():
                log.warning("consuming is interrupted: %s", error.str())
            elif stop.requested:
                self._consumer.acknowledge(record, AcknowledgeType.RELEASE)
            else:
                self._server.serve(record, received_us, partial(self._written.append, record), idle=idle)
                idle = False
        self._server.output.drain(DRAIN_S)  # every record must be acknowledged before the next poll
        self._server.output.serve()
        self._acknowledge()

    def _acknowledge(self) -> None:
        while self._written:
            self._consumer.acknowledge(self._written.popleft())

    def _commit(self) -> None:
        if self._written:
            self._acknowledge()
            self._consumer.commit_async()

    def _on_statistics(self, statistics: str) -> None:
        group = json.loads(statistics).get("cgrp", {})
        replica = self._server.replica
        replica.rebalances = int(group.get("rebalance_cnt", 0))
        if group.get("assignment_size", 0) and not replica.ready:
            replica.ready = True
            self._server.report()


def _on_committed(_: Any, error: KafkaException | None) -> None:
    if error is not None:  # the broker hands the records out again
        log.warning("acknowledgements were refused: %s", error)
