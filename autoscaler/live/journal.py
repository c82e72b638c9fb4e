"""What the autoscaler saw, decided and did, on the journal topic and, the newest of it, in memory."""

import time
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Final

import msgspec
from confluent_kafka import KafkaError, Producer

from autoscaler.live.clients import client
from autoscaler.live.metrics import Metrics
from autoscaler.model import Decision, GroupObservation
from autoscaler.ports import NotReadyError
from autoscaler.records import GroupStatus, decided, held
from contracts.connection import Connection
from contracts.journal import JournalEntry, TickRecord
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
        self._take(observation.at_s, partial(decided, observation, decision, epoch=self._status().epoch))

    def record_hold(self, missing: NotReadyError) -> None:
        """Record that nothing was decided because something was unknown."""
        self._take(self._clock(), partial(held, missing.missing, self._status()))

    def _take(self, at_s: float, made: Callable[..., TickRecord]) -> None:
        self._tick += 1
        self._record(made(at_us=int(at_s * 1e6), tick=self._tick, policy=self._policy))
