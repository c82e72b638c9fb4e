"""What the autoscaler saw, decided and did, on the journal topic and, the newest of it, in memory."""

import time
from collections import deque
from collections.abc import Callable
from typing import Final

import msgspec
from confluent_kafka import KafkaError, Producer

from autoscaler.live.clients import client
from autoscaler.live.group import GroupStatus
from autoscaler.live.metrics import Metrics
from autoscaler.model import Action, Decision, GroupObservation
from autoscaler.ports import NotReadyError
from autoscaler.records import alternatives_weighed, partitions_seen
from contracts.connection import Connection
from contracts.journal import AlternativeWeighed, JournalEntry, PartitionSeen, TickRecord
from contracts.topics import Topic, qualified

KEPT: Final = 100
"""Decisions kept in memory for people who ask by HTTP."""


class JournalTopic:
    """Takes entries of every kind. Never waits for the broker: it is told, and what it did not take is counted."""

    def __init__(self, connection: Connection, metrics: Metrics) -> None:
        self._topic = qualified(connection.namespace, Topic.JOURNAL)
        self._producer = Producer(client(connection, enable_idempotence=True, linger_ms=5))
        self._metrics = metrics
        self.recent: deque[TickRecord] = deque(maxlen=KEPT)
        self.lost = 0
        """Entries that never reached the topic."""

    def record(self, entry: JournalEntry) -> None:
        """Write one entry."""
        self._metrics.note(entry)
        if isinstance(entry, TickRecord):
            self.recent.append(entry)
        try:
            self._producer.produce(self._topic, msgspec.json.encode(entry), partition=0, on_delivery=self._delivered)
        except BufferError:
            self.lost += 1
        self._producer.poll(0)

    def close(self, deadline_s: float = 5.0) -> int:
        """Wait until everything is written. Returns the number of entries that were lost."""
        return self.lost + int(self._producer.flush(deadline_s))

    def _delivered(self, error: KafkaError | None, _message: object) -> None:
        self.lost += error is not None


class LiveJournal:
    """Implements autoscaler.ports.Journal: one TickRecord for each tick."""

    def __init__(
        self,
        record: Callable[[JournalEntry], None],
        status: Callable[[], GroupStatus],
        policy: str,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._record = record
        self._status = status
        self._policy = policy
        self._clock = clock
        self._tick = 0

    def record(self, observation: GroupObservation, decision: Decision) -> None:
        """Record one decision with what it was made from."""
        self._write(
            at_s=observation.at_s,
            action=decision.action,
            reason=decision.reason,
            service_rate=observation.service_rate,
            requested_replicas=observation.requested_replicas,
            ready_replicas=sum(replica.ready for replica in observation.replicas),
            planned_replicas=decision.plan.count,
            partitions=partitions_seen(observation),
            alternatives=alternatives_weighed(decision),
        )

    def record_hold(self, missing: NotReadyError) -> None:
        """Record that nothing was decided because something was unknown."""
        status = self._status()
        self._write(
            at_s=self._clock(),
            action=Action.HOLD,
            reason="not everything is known",
            service_rate=status.service_rate,
            requested_replicas=status.requested_replicas,
            ready_replicas=status.ready_replicas,
            planned_replicas=status.planned_replicas,
            partitions=(),
            missing=missing.missing,
        )

    def _write(
        self,
        *,
        at_s: float,
        action: Action,
        reason: str,
        service_rate: float,
        requested_replicas: int,
        ready_replicas: int,
        planned_replicas: int,
        partitions: tuple[PartitionSeen, ...],
        alternatives: tuple[AlternativeWeighed, ...] = (),
        missing: str | None = None,
    ) -> None:
        self._tick += 1
        self._record(
            TickRecord(
                at_us=int(at_s * 1e6),
                tick=self._tick,
                policy=self._policy,
                action=action.value,
                reason=reason,
                service_rate=service_rate,
                partitions=partitions,
                ready_replicas=ready_replicas,
                requested_replicas=requested_replicas,
                planned_replicas=planned_replicas,
                epoch=self._status().epoch,
                alternatives=alternatives,
                missing=missing,
            )
        )
