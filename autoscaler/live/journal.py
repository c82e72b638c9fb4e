"""Writes observations, decisions and actions to the journal topic, to memory for the pages, and to metrics."""

from collections import deque
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final

import msgspec
from confluent_kafka import KafkaError, KafkaException, Producer

from autoscaler.comparisons import encode
from autoscaler.live.metrics import JOURNAL_BYTES, JOURNAL_LOST, Metrics
from autoscaler.live.problems import PERSISTENT_TICKS, Problems
from autoscaler.model import Action, Decision, GroupObservation
from autoscaler.ports import NotReadyError
from autoscaler.records import EventAges, GroupStatus, decision_record, not_ready_record
from contracts.clock import monotonic_s, wall_offset_s
from contracts.connection import Connection
from contracts.journal import JournalEncoder, JournalEntry, TickRecord
from contracts.preflight import client_config
from contracts.topics import Topic, qualified

MAX_RECENT_DECISIONS: Final = 100
"""Most decisions that are kept in memory for the page /decisions."""
MAX_RECENT_PARTITIONS: Final = 100_000
"""Most partitions in all recent decisions together. The newest decision is always kept."""
ACKNOWLEDGEMENT_TIMEOUT_S: Final = 5.0
"""Time without an acknowledgement after which a problem is reported."""
QUEUE_KB: Final = 65_536
"""Size of the producer's queue while brokers do not answer. Later records are lost."""


class JournalTopic:
    """Writes entries of every kind. A failing journal neither stops the control loop nor makes it wait.

    report_problem: called with the reason while records are lost or unacknowledged; empty: recovered.
    """

    def __init__(
        self,
        connection: Connection,
        key: bytes,
        metrics: Metrics,
        report_problem: Callable[[str], None],
        clock: Callable[[], float] = monotonic_s,
    ) -> None:
        self._unacknowledged_since_s: float | None = None
        """When the oldest unacknowledged record was written."""
        self._topic = qualified(connection.namespace, Topic.JOURNAL)
        self._key = key
        options = {"enable_idempotence": True, "compression_type": "gzip", "queue_buffering_max_kbytes": QUEUE_KB}
        self._producer = Producer(client_config(connection, linger_ms=5, **options))
        self._metrics, self._report_problem, self._clock = metrics, report_problem, clock
        self._encoder = JournalEncoder()
        self.lost = 0

    def record(self, entry: JournalEntry) -> None:
        """Write one entry."""
        self._metrics.count_entry(entry)
        try:
            for value in self._encoder.records(entry):
                self._producer.produce(self._topic, value, key=self._key, partition=0, on_delivery=self._delivered)
                self._metrics[JOURNAL_BYTES].inc(len(value))
                if self._unacknowledged_since_s is None:
                    self._unacknowledged_since_s = self._clock()
        except (BufferError, KafkaException, TypeError, ValueError) as error:  # TypeError: a value that is not JSON
            self._count_lost(str(error))
        self._producer.poll(0)
        silent_s = self._clock() - (self._unacknowledged_since_s or self._clock())
        if silent_s > ACKNOWLEDGEMENT_TIMEOUT_S:
            self._report_problem(f"no broker has acknowledged a record for {silent_s:.0f} s")

    def close(self, deadline_s: float = 5.0) -> int:
        """Flush, for `deadline_s` at most. Returns the number of records that were lost."""
        return int(self._producer.flush(deadline_s)) + self.lost

    def _delivered(self, error: KafkaError | None, _message: object) -> None:
        if error is not None:
            self._count_lost(error.str())
        else:
            self._unacknowledged_since_s = None
            self._report_problem("")

    def _count_lost(self, why: str) -> None:
        self.lost += 1
        self._metrics[JOURNAL_LOST].inc()
        self._encoder.lost()
        self._report_problem(f"{self.lost} records lost: {why}")


class LiveJournal:
    """Implements autoscaler.ports.Journal: one TickRecord for each tick.

    act: setting of the autoscaler; unless it is `on`, each reason begins with `would`. say: gets the reason of each
    change.
    """

    def __init__(
        self,
        record: Callable[[JournalEntry], None],
        status: Callable[[], GroupStatus],
        policy: str,
        problems: Problems,
        *,
        act: str = "on",
        say: Callable[[str], None] = lambda _: None,
        stamp_us: Callable[[float], int] = lambda at_s: round((at_s + wall_offset_s()) * 1e6),
        clock: Callable[[], float] = monotonic_s,
    ) -> None:
        self._record, self._status, self._policy, self._problems = record, status, policy, problems
        self._act, self._say, self._stamp_us, self._clock = act, say, stamp_us, clock
        self._tick = 0
        self._ages = EventAges()
        self.observed: Callable[[GroupObservation], None] = lambda _: None
        """Gets each observation on which a decision was made."""
        self.recent: deque[TickRecord] = deque(maxlen=MAX_RECENT_DECISIONS)
        """Newest decisions, oldest first."""

    def record(self, observation: GroupObservation, decision: Decision) -> None:
        """Record one decision with its observation. Report the policy's fault if the fallback made the decision."""
        self._problems.report("policy", decision.fault, unhealthy_after=PERSISTENT_TICKS)
        self.observed(observation)
        if self._act != "on":
            decision = replace(decision, reason=f"would: {decision.reason}")
        comparison = ""
        if decision.action is not Action.NO_CHANGE:
            self._say(decision.reason)
            comparison = encode(decision.comparison)
        found = observation, decision, self._ages.observe(observation)
        create = partial(decision_record, *found, epoch=self._status().epoch)
        self._record_tick(observation.at_s, create, comparison)

    def record_not_ready(self, missing: NotReadyError) -> None:
        """Record a tick without a decision because data was missing."""
        self._record_tick(self._clock(), partial(not_ready_record, str(missing), self._status()))

    def _record_tick(self, at_s: float, create: Callable[..., TickRecord], comparison: str = "") -> None:
        self._tick += 1
        tick = create(at_us=self._stamp_us(at_s), tick=self._tick, policy=self._policy)
        problems = tuple(f"{component}: {problem}" for component, problem in self._problems.current.items())
        self.recent.append(msgspec.structs.replace(tick, problems=problems))
        while len(self.recent) * len(tick.partitions) > MAX_RECENT_PARTITIONS and len(self.recent) > 1:
            self.recent.popleft()
        self._record(msgspec.structs.replace(self.recent[-1], comparison=comparison))
