"""The times that a live run itself shows, and that the simulator must be told to be the same world."""

from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from bench.measures import percentile_us
from bench.replay.recorded import Recorded, Served, Times
from contracts.journal import ReplicaChange

TOLD_PERCENTILE: Final = 0.99
"""Of the pauses: what the live autoscaler learns of them, too."""
OLDEST_COMMIT_US: Final = 2_000_000
"""Beyond it a lag is no matter of commits."""


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """What was measured in one run. None: the run had nothing to measure it by."""

    service_rate: float
    """μ in events/s as the autoscaler had learned it: the median over its ticks."""
    transit_s: float | None
    """From the hand-over to the broker until an idle replica had the event: median."""
    pause_s: float | None
    """Of a partition that moved while events waited in it: from the last one done at its old owner until the next one
    was at the new one. Median."""
    pause_p99_s: float | None
    pauses: int
    """So many were seen."""
    startup_s: float | None
    """From the request of a replica until it was ready: median."""
    commit_age_s: float
    """How old the commits were that the autoscaler saw: with it, the lag it saw sums up to what was not done."""
    tick_offset_s: float
    """When ticks read the offsets, after whole decision intervals: median."""
    initial_replicas: int
    """In the plan in force as the workload began."""


def measure(recorded: Recorded) -> Measured:
    """Return what `recorded` shows. Raises ValueError for a run in which no tick saw the group."""
    ticks = recorded.ticks
    if not ticks:
        raise ValueError("no tick of the autoscaler saw the group")
    pauses_us, transits_us = pauses(recorded), transits(recorded.served)
    interval_us = round(float(_told(recorded, "autoscaler", "decision_interval_s", 1.0)) * 1e6)
    offsets_us = np.array([(tick.at_us - recorded.started_us) % interval_us for tick in ticks])
    before = [plan for plan in recorded.plans if plan.at_us <= recorded.started_us]
    return Measured(
        service_rate=float(np.median([tick.service_rate for tick in ticks])),
        transit_s=_percentile_s(transits_us, 0.5),
        pause_s=_percentile_s(pauses_us, 0.5),
        pause_p99_s=_percentile_s(pauses_us, TOLD_PERCENTILE),
        pauses=len(pauses_us),
        startup_s=_percentile_s(startups(recorded), 0.5),
        commit_age_s=commit_age_us(recorded) / 1e6,
        tick_offset_s=float(np.median(offsets_us)) / 1e6,
        initial_replicas=len(before[-1].replicas) if before else ticks[0].requested_replicas,
    )


def transits(served: Served) -> Times:
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


def pauses(recorded: Recorded) -> Times:
    """Return how long partitions that moved were served by nobody, µs, where that can be seen.

    Events must have been waiting, and the old owner must have finished one of them after the plan was written: what
    lies between is then the handover, and not the old owner at work on other partitions. None under a comparator:
    what it calls received is the begin of service, and its new owner may have been at work, too.
    """
    if _told(recorded, "payment", "runtime", ""):
        return np.empty(0, np.int64)
    served = recorded.served
    moved = np.flatnonzero((np.diff(served.partition) == 0) & (np.diff(served.replica) != 0))
    free_us, next_us = served.done_us[moved], served.received_us[moved + 1]
    written_us = np.array([plan.at_us - recorded.started_us for plan in recorded.plans], dtype=np.int64)
    if not len(written_us):
        return np.empty(0, np.int64)
    plan_us = written_us[np.maximum(0, np.searchsorted(written_us, next_us) - 1)]
    seen = (served.handed_us[moved + 1] < free_us) & (plan_us < free_us) & (free_us < next_us)
    return (next_us - free_us)[seen]


def startups(recorded: Recorded) -> Times:
    """Return requested → ready of each replica that was requested during the workload, µs."""
    requested: dict[str, int] = {}
    found = []
    for change in recorded.replica_changes:
        if change.change is ReplicaChange.REQUESTED:
            requested[change.replica] = change.at_us
        elif change.change is ReplicaChange.READY and change.replica in requested:
            found.append((requested.pop(change.replica), change.at_us))
    inside = [until_us - since_us for since_us, until_us in found if since_us >= recorded.started_us]
    return np.array(inside, dtype=np.int64)


def commit_age_us(recorded: Recorded) -> int:
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


def _told(recorded: Recorded, section: str, key: str, default: Any) -> Any:
    """Return what the run's scenario said."""
    return recorded.info.scenario.get(section, {}).get(key, default)


def _percentile_s(values_us: NDArray[np.int64], percentile: float) -> float | None:
    return percentile_us(values_us, percentile) / 1e6 if len(values_us) else None
