"""Fold journal entries, progress reports and finished events into the state of one group."""

from collections import deque
from dataclasses import dataclass, field
from threading import Lock
from typing import Final

import msgspec

from autoscaler.page.decisions import Decisions
from contracts.journal import JournalEntry, PlanWritten, ReplicaChange, ReplicaChanged, TickRecord
from contracts.progress import COUNTS_WITHIN_TARGET, Progress

HISTORY: Final = 120
"""Maximum number of ticks, and of seconds with latencies, in the curves."""
DEAD_SHOWN_US: Final = 8_000_000
MAX_PAUSES: Final = 500
"""Time for which a replica that died stays in the state, µs."""


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
    done: int = 0
    in_sla: int = 0
    worst_s: float = 0.0
    seconds: dict[int, Second] = field(default_factory=dict)
    """Second since 1970 → events finished in it; the newest HISTORY."""
    sums: deque[tuple[TickRecord, float, int]] = field(default_factory=lambda: deque(maxlen=HISTORY))
    """Ticks that observed the partitions, but without these, with the arrival rate in events/s and the lag of all."""
    newest: TickRecord | None = None
    """The newest tick, with or without partitions."""
    tick: TickRecord | None = None
    """The newest tick that observed the partitions; None: no tick did."""
    first_us: int | None = None
    """Time of the first entry, µs since 1970."""
    cost_s: float = 0.0
    """Requested replicas, summed over the time until the newest tick: replica-seconds."""
    counted_us: tuple[int, int] = (0, 2**63)
    """Begin and end of the time whose cost is counted, µs since 1970."""
    plans: deque[PlanWritten] = field(default_factory=lambda: deque(maxlen=HISTORY))
    """The newest plans, without their assignment."""
    is_assigned: bool = False
    """Whether the newest plan assigns partitions."""
    owners: dict[int, str] = field(default_factory=dict)
    """Partition → owner by the newest plan, or by the newest tick if plans assign no partitions."""
    replicas: dict[str, ReplicaChange] = field(default_factory=dict)
    since_us: dict[str, int] = field(default_factory=dict)
    """Replica → time of its newest change; replicas that died stay for a while."""
    requested_us: dict[str, int] = field(default_factory=dict)
    startup_us: int = 0
    """Time from request to ready of the replica that became ready last, µs; 0: unknown."""
    incidents: deque[str] = field(default_factory=lambda: deque(maxlen=5))
    moved: int = 0
    """Partitions moved by all plans."""
    pauses_s: dict[int, float] = field(default_factory=dict)
    """Epoch of the plan → longest time for which a partition that it moved was not served, as replicas report it."""
    decisions: Decisions = field(default_factory=Decisions)
    reported: dict[str, tuple[str, tuple[int, ...]]] = field(default_factory=dict)
    """Replica → incarnation and `latencies` of its newest progress report."""
    lock: Lock = field(default_factory=Lock)
    """Held by a thread that changes or reads the state while other threads do."""

    @property
    def longest_pause_s(self) -> float:
        """Longest pause of all handovers so far; 0 without any."""
        return max(self.pauses_s.values(), default=0.0)

    @property
    def problems(self) -> tuple[str, ...]:
        """Problems that the autoscaler reported at its newest tick."""
        return self.newest.problems if self.newest else ()

    def cost_at(self, now_us: int) -> float:
        """Return the cost until a time after the newest tick, replica-seconds."""
        if self.newest is None:
            return 0.0
        begin_us, end_us = max(self.newest.at_us, self.counted_us[0]), min(now_us, self.counted_us[1])
        return self.cost_s + self.newest.requested_replicas * max(0, end_us - begin_us) / 1e6

    def count_cost(self, tick: TickRecord) -> None:
        """Add the cost until a tick, and keep the tick as the newest."""
        self.cost_s, self.newest = self.cost_at(tick.at_us), tick

    def record_latency(self, done_us: int, latency_s: float) -> None:
        """Record one latency."""
        self.done += 1
        in_sla = latency_s <= self.latency_target_s
        self.in_sla += in_sla
        self.worst_s = max(self.worst_s, latency_s)
        second = self._second(done_us // 1_000_000)
        second.latencies_s.append(latency_s)
        second.done += 1
        second.late += not in_sla

    def record_progress(self, progress: Progress, *, count_events: bool = False) -> None:
        """Record one progress report. count_events: whether finished events are known from these reports alone."""
        for rebalance in progress.recent_rebalances:
            if rebalance.taken and rebalance.pause_us > 0:
                self.pauses_s[rebalance.epoch] = max(self.pauses_s.get(rebalance.epoch, 0.0), rebalance.pause_us / 1e6)
                if len(self.pauses_s) > MAX_PAUSES:
                    del self.pauses_s[min(self.pauses_s)]
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
                self.plans.append(msgspec.structs.replace(entry, assignment=None))
                self.moved += entry.moved
                self.owners, self.is_assigned = dict(entry.assignment or {}), bool(entry.assignment)
            case ReplicaChanged():
                self._record_change(entry)
        self.decisions.record(entry)

    def _record_tick(self, tick: TickRecord) -> None:
        self.count_cost(tick)
        if not tick.partitions:
            return
        self.tick = tick
        rate, lag = sum(one.arrival_rate for one in tick.partitions), sum(one.lag for one in tick.partitions)
        self.sums.append((msgspec.structs.replace(tick, partitions=(), alternatives=(), comparison=""), rate, lag))
        known = {one.partition: one.owner or "" for one in tick.partitions}
        if self.is_assigned:  # the tick's owners precede its own decision
            known = {number: self.owners.get(number, owner) for number, owner in known.items()}
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
