"""The times that a live run itself shows, and that the simulator must be told to be the same world."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import inf
from pathlib import Path
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from autoscaler.simulator.settings import Tick
from bench.replay.recorded import Recorded, Served, Times, read_run
from contracts.journal import PlanWritten, ReplicaChange, ReplicaChanged, TickRecord
from contracts.validation import InvalidSettingsError
from report.measures import percentile_us

AT_ONCE: Final = ("down", "reassign")
"""Actions whose plans wait for no replica."""
TOLD_PERCENTILE: Final = 0.99
"""Of the pauses: what the live autoscaler learns of them, too."""
EARLY: Final = 0.05
"""Share of an interval by which a tick may come before the beat of the others; it may be late by almost all of it."""


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """What was measured in one run. None: the run had nothing to measure it by."""

    service_rate: float
    """μ in events/s as the autoscaler had learned it: the median over its ticks."""
    overhead_s: float
    """What an event took beyond the service time that replicas were told; at least 0."""
    transit_s: float | None
    """From the hand-over to the broker until an idle replica had the event: median."""
    pause_s: float | None
    """Of a partition that moved while events waited in it: from the last one done at its old owner until the next one
    was at the new one. Median."""
    pause_p99_s: float | None
    pauses: int
    """So many were seen."""
    notice_s: float | None
    """From the tick that moved such a partition until its old owner stopped serving it: median."""
    startup_s: float | None
    """From the request of a replica until it was ready: median."""
    stop_s: float | None
    """From the plan that no longer named a replica until it was gone: median."""
    commit_age_s: float
    """How old the commits were that the autoscaler saw: with it, the lag it saw sums up to what was not done."""
    commit_interval_s: float
    """From commit to commit of a replica."""
    tick_offset_s: float
    """When ticks read the offsets, after whole decision intervals: median."""
    initial_replicas: int
    """In the plan in force at the first tick that saw the group."""


def measure(recorded: Recorded) -> Measured:
    """Return what `recorded` shows. Raises ValueError for a run in which no tick saw the group."""
    ticks = recorded.ticks
    if not ticks:
        raise ValueError("no tick of the autoscaler saw the group")
    free_us, next_us, plan = _handovers(recorded)
    offsets_us = np.array([(tick.at_us - recorded.started_us) % recorded.interval_us for tick in ticks])
    before = [plan for plan in recorded.plans if plan.at_us <= recorded.first_tick_us]
    rate = float(np.median([tick.service_rate for tick in ticks]))
    return Measured(
        service_rate=rate,
        overhead_s=max(0.0, 1 / rate - float(recorded.told("payment", "service_time_s", 1 / rate))),
        transit_s=_percentile_s(_transits(recorded.served), 0.5),
        pause_s=_percentile_s(next_us - free_us, 0.5),
        pause_p99_s=_percentile_s(next_us - free_us, TOLD_PERCENTILE),
        pauses=len(plan),
        notice_s=_percentile_s(_notices(recorded, free_us, plan), 0.5),
        startup_s=_percentile_s(_startups(recorded), 0.5),
        stop_s=_percentile_s(_stops(recorded), 0.5),
        commit_age_s=_commit_age_us(recorded) / 1e6,
        commit_interval_s=_commit_interval_us(recorded) / 1e6,
        tick_offset_s=float(np.median(offsets_us)) / 1e6,
        initial_replicas=len(before[-1].replicas) if before else ticks[0].requested_replicas,
    )


def measured_run(folder: Path) -> Measured:
    """Return what the live run in `folder` shows. Raises InvalidSettingsError where that cannot be told."""
    recorded = read_run(folder)
    if recorded.info.world != "live":
        raise InvalidSettingsError([f"{folder}: the run was simulated: it took the times that it was told"])
    try:
        return measure(recorded)
    except ValueError as wrong:
        raise InvalidSettingsError([f"{folder}: {wrong}"]) from wrong


def _percentile_s(values_us: NDArray[np.int64], percentile: float) -> float | None:
    return percentile_us(values_us, percentile) / 1e6 if len(values_us) else None


def _transits(served: Served) -> Times:
    """Return handed → received of the events that found their replica idle, and their partition where it had been, µs.

    An event that waited for others, or for its partition to move, tells nothing of the way through the broker.
    """
    by_done = np.lexsort((served.done_us, served.replica))
    follows = np.diff(served.replica[by_done]) == 0
    idle_from_us = np.full(len(served), np.iinfo(np.int64).max)
    idle_from_us[by_done[1:][follows]] = served.done_us[by_done[:-1][follows]]
    stayed = np.concatenate([[False], (np.diff(served.partition) == 0) & (np.diff(served.replica) == 0)])
    idle = stayed & (idle_from_us < served.handed_us)
    return (served.received_us - served.handed_us)[idle]


def _handovers(recorded: Recorded) -> tuple[Times, Times, Times]:
    """Return of handovers: the last event done before, the first received after, µs; and the number of their plan.

    Those that can be seen: events must have been waiting, and the old owner must have finished one of them after the
    plan was written: what lies between is then the handover, and not the old owner at work on other partitions.
    None under a comparator: what it calls received is the begin of service, and its new owner may have been at work,
    too.
    """
    written_us = _written_us(recorded)
    if recorded.told("payment", "runtime", "") or not len(written_us):
        return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int64)
    served = recorded.served
    moved = np.flatnonzero((np.diff(served.partition) == 0) & (np.diff(served.replica) != 0))
    free_us, next_us = served.done_us[moved], served.received_us[moved + 1]
    plan = np.maximum(0, np.searchsorted(written_us, next_us) - 1)
    seen = (served.handed_us[moved + 1] < free_us) & (written_us[plan] < free_us) & (free_us < next_us)
    return free_us[seen], next_us[seen], plan[seen]


def _written_us(recorded: Recorded) -> Times:
    return np.array([plan.at_us - recorded.started_us for plan in recorded.plans], dtype=np.int64)


def _notices(recorded: Recorded, free_us: Times, plan: Times) -> Times:
    """Return how long after a tick the owners of partitions that it moved stopped serving them, µs.

    Of plans that brought no replica: one that does is written when that one is ready.
    """
    ticks_us: Times = np.array([tick.at_us - recorded.started_us for tick in recorded.ticks], dtype=np.int64)
    at_once = np.array([one.action in AT_ONCE for one in recorded.plans], dtype=bool)[plan]
    decided = np.searchsorted(ticks_us, _written_us(recorded)[plan], side="right") - 1
    noticed_us: Times = free_us - ticks_us[decided]
    return noticed_us[at_once & (decided >= 0)]


def _startups(recorded: Recorded) -> Times:
    """Return requested → ready of each replica that was requested during the workload, µs."""
    requested: dict[str, int] = {}
    found = []
    for entry in recorded.journal:
        if isinstance(entry, ReplicaChanged) and entry.change is ReplicaChange.REQUESTED:
            requested[entry.replica] = entry.at_us
        elif isinstance(entry, ReplicaChanged) and entry.change is ReplicaChange.READY and entry.replica in requested:
            found.append((requested.pop(entry.replica), entry.at_us))
    return _lengths_us(recorded, found)


def _stops(recorded: Recorded) -> Times:
    """Return left out of a plan → gone of each replica that was stopped during the workload, µs."""
    left_out: dict[str, int] = {}
    named: set[str] = set()
    found = []
    for entry in recorded.journal:
        if isinstance(entry, PlanWritten):
            left_out |= dict.fromkeys(named.difference(entry.replicas), entry.at_us)
            named = set(entry.replicas)
        elif isinstance(entry, ReplicaChanged) and entry.change is ReplicaChange.LEFT and entry.replica in left_out:
            found.append((left_out.pop(entry.replica), entry.at_us))
    return _lengths_us(recorded, found)


def _lengths_us(recorded: Recorded, found: Sequence[tuple[int, int]]) -> Times:
    return np.array([until - since for since, until in found if since >= recorded.started_us], dtype=np.int64)


OLDEST_COMMIT_US: Final = 2_000_000
"""Beyond it a lag is no matter of commits."""
VAGUE_SHARE: Final = 0.3
"""Of the interval between commits: a commit whose moment is known less well tells nothing of the clock."""
ENOUGH: Final = 20
"""Pairs of ticks that tell how a clock runs."""


def _commit_age_us(recorded: Recorded) -> int:
    """Return how old commits were, µs: the age with which what was not done sums up to the lag that all ticks saw."""
    ticks = recorded.ticks
    at_us = np.array([tick.at_us - recorded.started_us for tick in ticks])
    handed_us, done_us = np.sort(recorded.served.handed_us), np.sort(recorded.served.done_us)
    lag = sum(seen.lag for tick in ticks for seen in tick.partitions)
    known = int(np.searchsorted(handed_us, at_us).sum()) - lag
    low, high = 0, OLDEST_COMMIT_US
    while low < high:
        middle = (low + high) // 2
        committed = int(np.searchsorted(done_us, at_us - middle, side="right").sum())
        low, high = (low, middle) if committed <= known else (middle + 1, high)
    return low


def _commit_interval_us(recorded: Recorded) -> float:
    """Return the time from commit to commit of a replica, µs.

    It is longer than what replicas are told to wait, by what a commit takes, and a little is much: the age that ticks
    see drifts by ten times that in a second. What they are told, where too little is seen.
    """
    commits, found = [commits for _, commits in _seen_commits(recorded, vague=False)], []
    told_us = recorded.commit_interval_us
    for before, after in pairwise(commits):
        for owner in before.keys() & after.keys():
            passed_us = after[owner] - before[owner]
            if count := round(passed_us / told_us):
                found.append(passed_us / count)
    return float(np.median(found)) if len(found) >= ENOUGH else told_us


def ticks_of(recorded: Recorded) -> list[Tick]:
    """Return the run's own ticks, for a world that begins `lead_us` before it: when, and how old commits were then.

    Without those between two beats of its clock: what cannot wait is for the world itself to see.
    """
    ticks = list(_seen_commits(recorded, vague=True))
    interval_us = recorded.interval_us
    beat_us = np.median([at_us % interval_us for at_us, _ in ticks]) - EARLY * interval_us if ticks else 0.0
    found, last = list[Tick](), -inf
    for at_us, commits in ticks:
        beat = (at_us - beat_us) // interval_us
        if beat > last:
            ages_s = {owner: (at_us - commit_us) / 1e6 for owner, commit_us in commits.items()}
            found.append(Tick(at_us + recorded.lead_us, ages_s))
        last = beat
    return found


def _seen_commits(recorded: Recorded, *, vague: bool) -> Iterator[tuple[int, dict[str, float]]]:
    """Yield for each tick when it was, and when the last commits were that it sees, by replica; µs since second 0.

    vague: those, too, of which only is known that they were before a replica, idle until then, had done anything.
    """
    served, vague_us = recorded.served, VAGUE_SHARE * recorded.commit_interval_us
    partitions = range(recorded.info.payment_partitions)
    handed = [np.sort(served.handed_us[served.partition == one]) for one in partitions]
    done = [np.sort(served.done_us[served.partition == one]) for one in partitions]
    for tick in recorded.all_ticks:
        at_us = tick.at_us - recorded.started_us
        yield at_us, _commits_us(tick, at_us, handed, done, vague_us, vague=vague)


def _commits_us(
    tick: TickRecord, at_us: int, handed: Sequence[Times], done: Sequence[Times], vague_us: float, *, vague: bool
) -> dict[str, float]:
    """Return when the last commit was that the tick sees of each replica, where what was done around it tells.

    Between the last event that it holds and the next one that was done. Where that is long, nearer to the latter than
    `vague_us`, if such a commit is wanted: one of long before would hold the same.
    """
    found: dict[str, float] = {}
    for owner in {seen.owner for seen in tick.partitions if seen.owner is not None}:
        theirs = [seen for seen in tick.partitions if seen.owner == owner]
        finished = [done[seen.partition][: np.searchsorted(done[seen.partition], at_us)] for seen in theirs]
        committed = sum(int(np.searchsorted(handed[seen.partition], at_us)) - seen.lag for seen in theirs)
        since = sum(map(len, finished)) - committed
        if since < 0:
            continue
        newest = np.append(np.sort(np.concatenate([times[-since - 1 :] for times in finished])), at_us)
        if since < len(newest) - 1:
            next_us, gap_us = float(newest[-since - 1]), float(newest[-since - 1] - newest[-since - 2])
            if vague or gap_us < vague_us:
                found[owner] = next_us - min(gap_us, vague_us) / 2
    return found
