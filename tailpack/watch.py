"""Follow a run by reading its topics, and maintain the state that the live view shows."""

import time
from collections import Counter, deque
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

import msgspec

from contracts.connection import Connection
from contracts.events import DeadLetter, Timeline
from contracts.journal import JournalDecoder, JournalEntry, PlanWritten, ReplicaChange, ReplicaChanged, TickRecord
from contracts.plan import plan_key
from contracts.progress import Progress, decode_progress
from contracts.record_reader import BEGINNING, RecordReader
from contracts.topics import PIPELINE_PARTITIONS, Group, Topic, partitions_of, qualified
from contracts.validation import DECODE_ERRORS
from loadgen.spec import Topology

WINDOW_S: Final = 5.0
"""Length of the window of latency figures, in seconds. It has enough events for a p99, and still shows bursts."""
HISTORY: Final = 120
"""Maximum number of ticks in the curves."""
SECONDS: Final = 60
"""Length of the handover curve, in seconds."""


class _Finished(msgspec.Struct, frozen=True):
    order_id: str
    timeline: Timeline


@dataclass(slots=True)
class Handovers:
    """Handovers of a run so far, and the worst latency of each second, to show whether moves delay events."""

    worst_s: dict[int, float] = field(default_factory=dict)
    """Second since 1970 → highest latency of the events finished in it."""
    moves_by_second: Counter[int] = field(default_factory=Counter)
    """Second since 1970 → number of partitions moved by plans that were written in it."""
    moved: int = 0
    plans: int = 0
    """Number of plans that moved a partition."""
    pauses_s: dict[int, float] = field(default_factory=dict)
    """Epoch of the plan → longest time for which a partition that it moved was not served, as replicas report it."""

    @property
    def longest_pause_s(self) -> float:
        """Longest pause of all handovers so far; 0 without any."""
        return max(self.pauses_s.values(), default=0.0)

    def curve(self) -> list[tuple[float, int]]:
        """Return worst latency and moved partitions of each of the last SECONDS seconds, oldest first."""
        seconds = [*self.worst_s, *self.moves_by_second]
        newest = max(seconds, default=-1)
        first = max(min(seconds, default=0), newest - SECONDS + 1)
        return [(self.worst_s.get(at, 0.0), self.moves_by_second[at]) for at in range(first, newest + 1)]

    def record_plan(self, plan: PlanWritten) -> None:
        """Record one plan."""
        self.moved += plan.moved
        self.plans += plan.moved > 0
        if plan.moved:
            self.moves_by_second[plan.at_us // 1_000_000] += plan.moved

    def record_progress(self, progress: Progress) -> None:
        """Record the pauses in the progress report of one replica."""
        for rebalance in progress.recent_rebalances:
            if rebalance.taken and rebalance.pause_us > 0:
                self.pauses_s[rebalance.epoch] = max(self.pauses_s.get(rebalance.epoch, 0.0), rebalance.pause_us / 1e6)


@dataclass(slots=True)
class LiveState:
    """State of the run so far. Latencies are in seconds, from an event's scheduled time until Payment is done."""

    latency_target_s: float
    finished: set[str] = field(default_factory=set)
    dead_letters: set[str] = field(default_factory=set)
    in_sla: int = 0
    worst_s: float = 0.0
    first_done_us: int | None = None
    last_done_us: int = 0
    recent: deque[tuple[float, float]] = field(default_factory=deque)
    """Pairs (monotonic time of reading in s, latency in s) of the events in the window, oldest first."""
    ticks: deque[TickRecord] = field(default_factory=lambda: deque(maxlen=HISTORY))
    plans: deque[PlanWritten] = field(default_factory=lambda: deque(maxlen=20))
    replicas: dict[str, ReplicaChange] = field(default_factory=dict)
    incidents: deque[str] = field(default_factory=lambda: deque(maxlen=5))
    handovers: Handovers = field(default_factory=Handovers)

    @property
    def tick(self) -> TickRecord | None:
        """The newest tick that observed the partitions; None: no tick did."""
        return next((tick for tick in reversed(self.ticks) if tick.partitions), None)

    @property
    def problems(self) -> tuple[str, ...]:
        """Problems that the autoscaler reported at its newest tick."""
        return self.ticks[-1].problems if self.ticks else ()

    def percentiles(self) -> tuple[float, float, float] | None:
        """Return median, p99 and maximum latency of the window in s; None without events."""
        latencies = sorted(latency for _, latency in self.recent)
        if not latencies:
            return None
        count = len(latencies)
        return latencies[(count - 1) // 2], latencies[max(0, -(-count * 99 // 100) - 1)], latencies[-1]

    def record_finished(self, order_id: str, timeline: Timeline, now: float) -> None:
        """Record one finished event. Duplicates are ignored."""
        if order_id in self.finished or timeline.done_us is None:
            return
        self.finished.add(order_id)
        self.first_done_us = min(self.first_done_us or timeline.done_us, timeline.done_us)
        self.last_done_us = max(self.last_done_us, timeline.done_us)
        latency = (timeline.done_us - timeline.intended_us) / 1e6
        self.in_sla += latency <= self.latency_target_s
        self.worst_s = max(self.worst_s, latency)
        self.recent.append((now, latency))
        second = timeline.done_us // 1_000_000
        self.handovers.worst_s[second] = max(self.handovers.worst_s.get(second, 0.0), latency)

    def record_entry(self, entry: JournalEntry) -> None:
        """Record one entry of the journal."""
        match entry:
            case TickRecord():
                self.ticks.append(entry)
            case PlanWritten():
                self.plans.append(entry)
                self.handovers.record_plan(entry)
            case ReplicaChanged(change=ReplicaChange.LEFT | ReplicaChange.DIED):
                self.replicas.pop(entry.replica, None)
            case ReplicaChanged():
                self.replicas[entry.replica] = entry.change
        if isinstance(entry, ReplicaChanged) and entry.change in {ReplicaChange.DIED, ReplicaChange.START_FAILED}:
            self.incidents.append(f"{entry.replica} {entry.change}: {entry.detail}")

    def drop_expired(self, now: float) -> None:
        """Drop latencies that are older than the window."""
        while self.recent and self.recent[0][0] < now - WINDOW_S:
            self.recent.popleft()


class Watcher:
    """Reads the topics of one run into a LiveState. It commits nothing and joins no group."""

    def __init__(
        self,
        connection: Connection,
        timeline: Topic,
        latency_target_s: float,
        pipeline_partitions: int = PIPELINE_PARTITIONS,
    ) -> None:
        self.state = LiveState(latency_target_s)
        space, topics = connection.namespace, (timeline, Topic.JOURNAL, Topic.PROGRESS, Topic.DEAD_LETTERS)
        self._names = {qualified(space, topic): topic for topic in topics}
        counts = {name: partitions_of(topic, 0, pipeline_partitions) for name, topic in self._names.items()}
        places = [(name, number) for name, count in counts.items() for number in range(count)]
        begins = dict.fromkeys(places, BEGINNING)  # fetched four times a second, not once for each event
        self._records = RecordReader(connection, begins, wait_ms=250, fetch_min_bytes=1_000_000)
        self._finished = msgspec.json.Decoder(_Finished)
        self._journal = JournalDecoder()
        self._keys = (None, plan_key(*(qualified(space, one) for one in (Group.PAYMENT, Topic.PAYMENTS_REQUESTED))))

    def poll(self, timeout_s: float) -> LiveState:
        """Process the records that arrive within `timeout_s`. No error is raised if the broker is unreachable."""
        for record in self._records.read(2000, timeout_s):
            self._record(self._names[record.topic], record.key, record.value)
        self.state.drop_expired(time.monotonic())
        return self.state

    def close(self) -> None:
        """Close the connection."""
        self._records.close()

    def _record(self, topic: Topic, key: bytes | None, value: bytes | None) -> None:
        """Process one Kafka record. Records that cannot be decoded are skipped."""
        with suppress(*DECODE_ERRORS):
            if topic is Topic.JOURNAL:
                if key in self._keys and (entry := self._journal.decode(value or b"")):
                    self.state.record_entry(entry)
            elif topic is Topic.PROGRESS:
                self.state.handovers.record_progress(decode_progress(value or b""))
            elif topic is Topic.DEAD_LETTERS:
                self.state.dead_letters.add(msgspec.json.decode(value or b"", type=DeadLetter).letter_id)
            else:
                event = self._finished.decode(value or b"")
                self.state.record_finished(event.order_id, event.timeline, time.monotonic())


def timeline_topic(topology: Topology) -> Topic:
    """Return the last topic of a topology, whose records have complete timelines."""
    return Topic.NOTIFICATIONS_SENT if topology is Topology.PIPELINE else Topic.PAYMENTS_SETTLED
