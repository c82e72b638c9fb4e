"""Follow a run from outside: the topics that anybody may read, folded into what a person wants to see."""

import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

import msgspec
from confluent_kafka import Consumer, TopicPartition

from contracts.connection import Connection
from contracts.events import DeadLetter, Timeline
from contracts.journal import JournalEntry, PlanWritten, ReplicaChange, ReplicaChanged, TickRecord, Unfolder
from contracts.progress import Progress
from contracts.topics import PIPELINE_PARTITIONS, Topic, partitions_of, qualified
from contracts.validation import UNDECODABLE
from loadgen.spec import Topology

WINDOW_S: Final = 5.0
"""Latency is shown over the events finished in the last seconds: long enough for a p99, short enough to see a surge."""
HISTORY: Final = 120
"""Ticks kept for the curves."""
SECONDS: Final = 60
"""How far back the curves go."""


class _Finished(msgspec.Struct, frozen=True):
    order_id: str
    timeline: Timeline


@dataclass(slots=True)
class Second:
    """One second of the wall clock."""

    worst_s: float = 0.0
    """Highest latency of the events that were finished in it."""
    moved: int = 0
    """Partitions that plans written in it gave to another replica."""


@dataclass(slots=True)
class Handovers:
    """Handovers of a run so far, second by second beside the latency: does a partition that moves leave a dent?"""

    by_second: dict[int, Second] = field(default_factory=dict)
    """Seconds since the epoch → what happened then; the last SECONDS of them."""
    moved: int = 0
    plans: int = 0
    """Plans that moved something."""
    pauses_s: dict[int, float] = field(default_factory=dict)
    """Epoch → longest time that a partition it moved was served by nobody, as the replicas report it."""

    @property
    def longest_pause_s(self) -> float:
        """Of all handovers so far; 0 without any."""
        return max(self.pauses_s.values(), default=0.0)

    def curve(self) -> list[Second]:
        """Return the last SECONDS seconds, oldest first, without gaps; fewer at the beginning."""
        if not self.by_second:
            return []
        newest = max(self.by_second)
        first = max(min(self.by_second), newest - SECONDS + 1)
        return [self.by_second.get(second, Second()) for second in range(first, newest + 1)]

    def finished(self, timeline: Timeline) -> None:
        """Take in one finished event."""
        if timeline.done_us is not None and (second := self._second(timeline.done_us)):
            second.worst_s = max(second.worst_s, (timeline.done_us - timeline.intended_us) / 1e6)

    def planned(self, plan: PlanWritten) -> None:
        """Take in one plan."""
        self.moved += plan.moved
        self.plans += plan.moved > 0
        if second := self._second(plan.at_us):
            second.moved += plan.moved

    def reported(self, progress: Progress) -> None:
        """Take in what one replica says."""
        for one in progress.rounds:
            if one.taken and one.pause_us > 0:
                self.pauses_s[one.epoch] = max(self.pauses_s.get(one.epoch, 0.0), one.pause_us / 1e6)

    def _second(self, at_us: int) -> Second | None:
        """Return the second in which `at_us` lies, None for one that is out of sight already."""
        number = at_us // 1_000_000
        newest = max(self.by_second, default=number)
        if number <= newest - SECONDS:
            return None
        if number > newest:
            for old in [one for one in self.by_second if one <= number - SECONDS]:
                del self.by_second[old]
        return self.by_second.setdefault(number, Second())


@dataclass(slots=True)
class LiveState:
    """What is known of the run so far. Latency is that of the SLA stage: payment done − intended, in seconds."""

    latency_target_s: float
    finished: set[str] = field(default_factory=set)
    refused: set[str] = field(default_factory=set)
    in_sla: int = 0
    worst_s: float = 0.0
    first_done_us: int | None = None
    last_done_us: int = 0
    recent: deque[tuple[float, float]] = field(default_factory=deque)
    """(seen at, latency), oldest first."""
    ticks: deque[TickRecord] = field(default_factory=lambda: deque(maxlen=HISTORY))
    plans: deque[PlanWritten] = field(default_factory=lambda: deque(maxlen=20))
    replicas: dict[str, ReplicaChange] = field(default_factory=dict)
    incidents: deque[str] = field(default_factory=lambda: deque(maxlen=5))
    handovers: Handovers = field(default_factory=Handovers)

    @property
    def tick(self) -> TickRecord | None:
        """The newest decision that saw every partition."""
        return next((tick for tick in reversed(self.ticks) if tick.partitions), None)

    @property
    def troubles(self) -> tuple[str, ...]:
        """What is wrong with the autoscaler, by its newest decision."""
        return self.ticks[-1].troubles if self.ticks else ()

    def percentiles(self) -> tuple[float, float, float] | None:
        """Median, p99 and maximum of the window, by nearest rank; None without events."""
        latencies = sorted(latency for _, latency in self.recent)
        if not latencies:
            return None
        count = len(latencies)
        return latencies[(count - 1) // 2], latencies[max(0, -(-count * 99 // 100) - 1)], latencies[-1]

    def finish(self, order_id: str, timeline: Timeline, now: float) -> None:
        """Take in one finished event; a repeat counts once."""
        if order_id in self.finished or timeline.done_us is None:
            return
        self.finished.add(order_id)
        self.first_done_us = min(self.first_done_us or timeline.done_us, timeline.done_us)
        self.last_done_us = max(self.last_done_us, timeline.done_us)
        latency = (timeline.done_us - timeline.intended_us) / 1e6
        self.in_sla += latency <= self.latency_target_s
        self.worst_s = max(self.worst_s, latency)
        self.recent.append((now, latency))
        self.handovers.finished(timeline)

    def note(self, entry: JournalEntry) -> None:
        """Take in one record of the journal."""
        match entry:
            case TickRecord():
                self.ticks.append(entry)
            case PlanWritten():
                self.plans.append(entry)
                self.handovers.planned(entry)
            case ReplicaChanged(change=ReplicaChange.LEFT | ReplicaChange.DIED):
                self.replicas.pop(entry.replica, None)
            case ReplicaChanged():
                self.replicas[entry.replica] = entry.change
        if isinstance(entry, ReplicaChanged) and entry.change in {ReplicaChange.DIED, ReplicaChange.START_FAILED}:
            self.incidents.append(f"{entry.replica} {entry.change}: {entry.detail}")

    def forget(self, now: float) -> None:
        """Drop what has left the window."""
        while self.recent and self.recent[0][0] < now - WINDOW_S:
            self.recent.popleft()


class Watcher:
    """Reads what the topics of one run tell into a LiveState. Commits nothing, joins no group."""

    def __init__(
        self,
        connection: Connection,
        timeline: Topic,
        latency_target_s: float,
        pipeline_partitions: int = PIPELINE_PARTITIONS,
    ) -> None:
        self.state = LiveState(latency_target_s)
        self._names = {
            qualified(connection.namespace, topic): topic
            for topic in (timeline, Topic.JOURNAL, Topic.PROGRESS, Topic.DEAD_LETTERS)
        }
        self._consumer = Consumer(
            connection.librdkafka()
            | {"group.id": qualified(connection.namespace, "watcher"), "enable.auto.commit": False, "log_level": 0}
        )
        self._consumer.assign(
            [
                TopicPartition(name, partition, 0)
                for name, topic in self._names.items()
                for partition in range(partitions_of(topic, 0, pipeline_partitions))
            ]
        )
        self._finished = msgspec.json.Decoder(_Finished)
        self._journal = Unfolder()
        self._progress = msgspec.json.Decoder(Progress)

    def poll(self, timeout_s: float) -> LiveState:
        """Take in what has arrived within `timeout_s`; never raises for a broker that is away."""
        for record in self._consumer.consume(2000, timeout_s):
            if not record.error():
                self._take(self._names[record.topic()], record.value())
        self.state.forget(time.monotonic())
        return self.state

    def close(self) -> None:
        """Let the connection go."""
        self._consumer.close()

    def _take(self, topic: Topic, value: bytes | None) -> None:
        """Note one record. What is none of ours is left out: anybody may write to a topic."""
        with suppress(*UNDECODABLE):
            if topic is Topic.JOURNAL:
                entry = self._journal.entry(value or b"")
                if entry is not None:
                    self.state.note(entry)
            elif topic is Topic.PROGRESS:
                self.state.handovers.reported(self._progress.decode(value or b""))
            elif topic is Topic.DEAD_LETTERS:
                self.state.refused.add(msgspec.json.decode(value or b"", type=DeadLetter).letter_id)
            else:
                event = self._finished.decode(value or b"")
                self.state.finish(event.order_id, event.timeline, time.monotonic())


def timeline_topic(topology: Topology) -> Topic:
    """Return the last topic of a topology, which holds whole timelines."""
    return Topic.NOTIFICATIONS_SENT if topology is Topology.PIPELINE else Topic.PAYMENTS_SETTLED
