"""Observations, decisions and actions: on the journal topic, the newest in memory, and counted as metrics."""

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Final

import msgspec
from confluent_kafka import KafkaError, KafkaException, Producer

from autoscaler.live.kafka import client_config
from autoscaler.live.metrics import JOURNAL_BYTES, JOURNAL_LOST, Metrics
from autoscaler.live.troubles import LASTING, Troubles
from autoscaler.model import Decision, GroupObservation
from autoscaler.ports import NotReadyError
from autoscaler.records import GroupStatus, decision_record, not_ready_record
from contracts.clock import monotonic_s, wall_offset_s
from contracts.connection import Connection
from contracts.journal import JournalEncoder, JournalEntry, TickRecord
from contracts.topics import Topic, qualified

KEPT: Final = 100
"""Decisions kept in memory for people who ask by HTTP …"""
KEPT_PARTITIONS: Final = 100_000
"""… as long as they tell of so many partitions together."""
SILENT_AFTER_S: Final = 5.0
"""When nothing that was written has arrived for so long, that is said."""
QUEUE_KB: Final = 65_536
"""What may wait for brokers that do not answer; what comes then is lost."""


class JournalTopic:
    """Takes entries of every kind. Nothing that happens to the journal ends control, or makes it wait.

    What does not reach the topic is counted, and told while it goes on. trouble: called with why; empty: it is over.
    """

    def __init__(
        self,
        connection: Connection,
        metrics: Metrics,
        trouble: Callable[[str], None],
        clock: Callable[[], float] = monotonic_s,
    ) -> None:
        self._clock = clock
        self._waits_since_s: float | None = None
        """When the oldest record was written of those since the last that a broker has acknowledged."""
        self._topic = qualified(connection.namespace, Topic.JOURNAL)
        how = {"enable_idempotence": True, "compression_type": "gzip", "queue_buffering_max_kbytes": QUEUE_KB}
        self._producer = Producer(client_config(connection, linger_ms=5, **how))
        self._metrics, self._trouble = metrics, trouble
        self._folder = JournalEncoder()
        self.recent: deque[TickRecord] = deque(maxlen=KEPT)
        self.lost = 0

    def record(self, entry: JournalEntry) -> None:
        """Write one entry."""
        self._metrics.note(entry)
        if isinstance(entry, TickRecord):
            self.recent.append(entry)
            while len(self.recent) * len(entry.partitions) > KEPT_PARTITIONS and len(self.recent) > 1:
                self.recent.popleft()
        try:
            for value in self._folder.records(entry):
                self._producer.produce(self._topic, value, partition=0, on_delivery=self._delivered)
                self._metrics[JOURNAL_BYTES].inc(len(value))
                self._waits_since_s = self._clock() if self._waits_since_s is None else self._waits_since_s
        except (BufferError, KafkaException, TypeError, ValueError) as refused:  # what cannot be JSON included
            self._lose(str(refused))
        self._producer.poll(0)
        if self._waits_since_s is not None and self._clock() - self._waits_since_s > SILENT_AFTER_S:
            self._trouble(f"no broker has taken a record for {self._clock() - self._waits_since_s:.0f} s")

    def close(self, deadline_s: float = 5.0) -> int:
        """Wait until everything is written. Returns the number of records that were lost."""
        return int(self._producer.flush(deadline_s)) + self.lost

    def _delivered(self, error: KafkaError | None, _message: object) -> None:
        if error is not None:
            self._lose(error.str())
        else:
            self._waits_since_s = None
            self._trouble("")

    def _lose(self, why: str) -> None:
        self.lost += 1
        self._metrics[JOURNAL_LOST].inc()
        self._folder.lost()
        self._trouble(f"{self.lost} records lost: {why}")


class LiveJournal:
    """Implements autoscaler.ports.Journal: one TickRecord for each tick."""

    def __init__(
        self,
        record: Callable[[JournalEntry], None],
        status: Callable[[], GroupStatus],
        policy: str,
        troubles: Troubles,
        *,
        stamp_us: Callable[[float], int] = lambda at_s: round((at_s + wall_offset_s()) * 1e6),
        clock: Callable[[], float] = monotonic_s,
    ) -> None:
        self._record, self._status, self._policy, self._troubles = record, status, policy, troubles
        self._stamp_us, self._clock = stamp_us, clock
        self._tick = 0

    def record(self, observation: GroupObservation, decision: Decision) -> None:
        """Record one decision with its observation; a policy for which another one stands in has a problem."""
        self._troubles.tell("policy", decision.fault, unwell_after=LASTING)
        self._take(observation.at_s, partial(decision_record, observation, decision, epoch=self._status().epoch))

    def record_not_ready(self, missing: NotReadyError) -> None:
        """Record that nothing was decided because something was unknown."""
        self._take(self._clock(), partial(not_ready_record, missing.missing, self._status()))

    def _take(self, at_s: float, made: Callable[..., TickRecord]) -> None:
        self._tick += 1
        tick = made(at_us=self._stamp_us(at_s), tick=self._tick, policy=self._policy)
        problems = tuple(f"{what}: {why}" for what, why in self._troubles.now.items())
        self._record(msgspec.structs.replace(tick, problems=problems))
