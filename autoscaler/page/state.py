"""Fold journal entries, progress reports and finished events into the state of one group."""

from collections import Counter, deque
from dataclasses import dataclass, field
from math import ceil
from threading import Lock
from typing import Final, NamedTuple

from autoscaler.page.decisions import Decisions
from contracts.events import Timeline
from contracts.journal import ExpectedArrivals, JournalEntry, PlanWritten, ReplicaChange, ReplicaChanged, TickRecord
from contracts.progress import COUNTS_WITHIN_TARGET, Progress

WINDOW_S: Final = 5.0
"""Length of the window of latency figures, in seconds. It has enough events for a p99, and still shows bursts."""
HISTORY: Final = 120
"""Maximum number of ticks, and of seconds with latencies, in the curves."""
SECONDS: Final = 60
"""Length of the handover curve, in seconds."""
TIMELINES: Final = 300
"""Number of the newest finished events from which the times of the stages are computed."""
DEAD_SHOWN_US: Final = 8_000_000
"""Time for which a replica that died stays in the state, µs."""


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


class TickSums(NamedTuple):
    """The totals of one tick. Rates are in events/s."""

    at_us: int
    arrival_rate: float
    lag: int
    requested: int
    ready: int
    needed: int
    """Fewest replicas that could serve the arrivals: arrival rate / μ, rounded up."""
    expected: ExpectedArrivals | None


@dataclass(slots=True)
class Second:
    """The events that were finished in one second. Latencies are in seconds; only their number may be known."""

    latencies_s: list[float] = field(default_factory=list)
    done: int = 0
    late: int = 0


@dataclass(slots=True)
class LiveState:
    """State of the run so far. Latencies are in seconds, from an event's scheduled time until Payment is done."""

    latency_target_s: float
    finished: set[str] = field(default_factory=set)
    dead_letters: set[str] = field(default_factory=set)
    done: int = 0
    in_sla: int = 0
    worst_s: float = 0.0
    first_done_us: int | None = None
    last_done_us: int = 0
    recent: deque[tuple[float, float]] = field(default_factory=deque)
    """Pairs (monotonic time of reading in s, latency in s) of the events in the window, oldest first."""
    timelines: deque[Timeline] = field(default_factory=lambda: deque(maxlen=TIMELINES))
    seconds: dict[int, Second] = field(default_factory=dict)
    """Second since 1970 → events finished in it; the newest HISTORY."""
    sums: deque[TickSums] = field(default_factory=lambda: deque(maxlen=HISTORY))
    """Totals of the ticks that observed the partitions."""
    newest: TickRecord | None = None
    """The newest tick, with or without partitions."""
    tick: TickRecord | None = None
    """The newest tick that observed the partitions; None: no tick did."""
    first_us: int | None = None
    """Time of the first entry, µs since 1970."""
    cost_s: float = 0.0
    """Requested replicas, summed over the time between ticks: replica-seconds."""
    plans: deque[PlanWritten] = field(default_factory=lambda: deque(maxlen=20))
    owners: dict[int, str] = field(default_factory=dict)
    """Partition → owner by the newest plan, or by the newest tick if plans assign no partitions."""
    replicas: dict[str, ReplicaChange] = field(default_factory=dict)
    since_us: dict[str, int] = field(default_factory=dict)
    """Replica → time of its newest change; replicas that died stay for a while."""
    requested_us: dict[str, int] = field(default_factory=dict)
    startup_us: int = 0
    """Time from request to ready of the replica that became ready last, µs; 0: unknown."""
    incidents: deque[str] = field(default_factory=lambda: deque(maxlen=5))
    handovers: Handovers = field(default_factory=Handovers)
    decisions: Decisions = field(default_factory=Decisions)
    reported: dict[str, tuple[str, tuple[int, ...]]] = field(default_factory=dict)
    """Replica → incarnation and `latencies` of its newest progress report."""
    lock: Lock = field(default_factory=Lock)
    """Held by a thread that changes or reads the state while other threads do."""

    @property
    def problems(self) -> tuple[str, ...]:
        """Problems that the autoscaler reported at its newest tick."""
        return self.newest.problems if self.newest else ()

    def percentiles(self) -> tuple[float, float, float] | None:
        """Return median, p99 and maximum latency of the window in s; None without events."""
        return ranks([latency for _, latency in self.recent])

    def record_finished(self, order_id: str, timeline: Timeline, now: float) -> None:
        """Record one finished event. Duplicates are ignored."""
        if order_id in self.finished or timeline.done_us is None:
            return
        self.finished.add(order_id)
        self.timelines.append(timeline)
        latency = (timeline.done_us - timeline.intended_us) / 1e6
        self.recent.append((now, latency))
        self.record_latency(timeline.done_us, latency)

    def record_latency(self, done_us: int, latency_s: float) -> None:
        """Record one latency."""
        self.done += 1
        self.first_done_us = min(self.first_done_us or done_us, done_us)
        self.last_done_us = max(self.last_done_us, done_us)
        in_sla = latency_s <= self.latency_target_s
        self.in_sla += in_sla
        self.worst_s = max(self.worst_s, latency_s)
        number = done_us // 1_000_000
        self.handovers.worst_s[number] = max(self.handovers.worst_s.get(number, 0.0), latency_s)
        second = self._second(number)
        second.latencies_s.append(latency_s)
        second.done += 1
        second.late += not in_sla

    def record_progress(self, progress: Progress, *, count_events: bool = False) -> None:
        """Record one progress report. count_events: whether finished events are known from these reports alone."""
        self.handovers.record_progress(progress)
        incarnation, before = self.reported.get(progress.replica, ("", ()))
        if not count_events or not progress.latencies:
            return
        self.reported[progress.replica] = progress.incarnation, progress.latencies
        if incarnation != progress.incarnation or len(before) != len(progress.latencies):
            before = (0,) * len(progress.latencies)
        new = [now - then for now, then in zip(progress.latencies, before, strict=True)]
        in_sla, done = sum(new[:COUNTS_WITHIN_TARGET]), sum(new)
        self.done += done
        self.in_sla += in_sla
        if incarnation:  # the events of a first report were finished at unknown times
            second = self._second(progress.at_us // 1_000_000)
            second.done += done
            second.late += done - in_sla

    def record_entry(self, entry: JournalEntry) -> None:
        """Record one entry of the journal."""
        self.first_us = entry.at_us if self.first_us is None else self.first_us
        match entry:
            case TickRecord():
                self._record_tick(entry)
            case PlanWritten():
                self.plans.append(entry)
                self.handovers.record_plan(entry)
                self.owners = dict(entry.assignment or {})
            case ReplicaChanged():
                self._record_change(entry)
        self.decisions.record(entry)

    def drop_expired(self, now: float) -> None:
        """Drop latencies that are older than the window."""
        while self.recent and self.recent[0][0] < now - WINDOW_S:
            self.recent.popleft()

    def _record_tick(self, tick: TickRecord) -> None:
        if self.newest is not None:
            self.cost_s += self.newest.requested_replicas * max(0, tick.at_us - self.newest.at_us) / 1e6
        self.newest = tick
        if not tick.partitions:
            return
        self.tick = tick
        rate, lag = sum(one.arrival_rate for one in tick.partitions), sum(one.lag for one in tick.partitions)
        needed = max(1, ceil(rate / tick.service_rate)) if tick.service_rate > 0 else 0
        self.sums.append(
            TickSums(tick.at_us, rate, lag, tick.requested_replicas, tick.ready_replicas, needed, tick.expected)
        )
        is_assigned = bool(self.plans and self.plans[-1].assignment)  # the tick's owners precede its own decision
        known = {one.partition: one.owner or "" for one in tick.partitions}
        self.owners = {number: self.owners.get(number, owner) for number, owner in known.items()}
        if not is_assigned:
            self.owners = known

    def _record_change(self, entry: ReplicaChanged) -> None:
        name, change = entry.replica, entry.change
        self.since_us[name] = entry.at_us
        if change in (ReplicaChange.LEFT, ReplicaChange.DIED):
            self.replicas.pop(name, None)
        else:
            self.replicas[name] = change
        if change is ReplicaChange.LEFT:
            del self.since_us[name]
        elif change is ReplicaChange.REQUESTED:
            self.requested_us[name] = entry.at_us
        elif change is ReplicaChange.READY and name in self.requested_us:
            self.startup_us = entry.at_us - self.requested_us.pop(name)
        if change in {ReplicaChange.DIED, ReplicaChange.START_FAILED}:
            self.incidents.append(f"{name} {change}: {entry.detail}")

    def _second(self, number: int) -> Second:
        if number not in self.seconds:
            self.seconds[number] = Second()
            while len(self.seconds) > HISTORY:
                del self.seconds[min(self.seconds)]
        return self.seconds.get(number) or Second()  # an event of long ago


def ranks(latencies_s: list[float]) -> tuple[float, float, float] | None:
    """Return median, p99 and maximum (nearest rank); None without values."""
    ordered, count = sorted(latencies_s), len(latencies_s)
    if not count:
        return None
    return ordered[(count - 1) // 2], ordered[max(0, -(-count * 99 // 100) - 1)], ordered[-1]
