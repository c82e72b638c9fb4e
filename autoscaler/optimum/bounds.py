"""Lower bounds of the cost from the work alone, for known events and any number of partitions."""

from dataclasses import dataclass

import numpy as np

from autoscaler.optimum.serving import Ints


@dataclass(frozen=True, kw_only=True)
class OptimumProblem:
    """Known events, and the rules of their service."""

    times_us: Ints
    """Intended times by event number, never decreasing."""
    partition: Ints
    takes_us: Ints
    """Service times by event number."""
    partitions: int
    ticks_us: Ints
    duration_us: int
    """Replicas are paid for until this time."""
    target_us: int
    late_share: float
    """Share of late events that the SLO allows."""
    pause_us: int
    startup_us: int
    owners: tuple[int, ...]
    """Replica of each partition before the first tick, numbered from 0."""
    replicas: int
    """Number of replicas before the first tick."""
    least_replicas: int = 1
    most_replicas: int


def volume_us(problem: OptimumProblem, allowed: int) -> int:
    """Return a lower bound from the work alone, replica-µs, for at most `allowed` late events.

    Between two ticks replicas cost at least the work of the events that arrive after the first and are due before the
    second. The run is divided at the ticks that give the largest sum.
    """
    cuts_us = np.concatenate(([0], problem.ticks_us, [problem.duration_us]))
    work_us = np.concatenate(([0], np.cumsum(problem.takes_us)))
    arrived_us = work_us[np.searchsorted(problem.times_us, cuts_us)]
    due_us = work_us[np.searchsorted(problem.times_us, cuts_us - problem.target_us, side="right")]
    best_us, ahead_us = 0, 0
    for number in range(1, len(cuts_us)):
        least = problem.least_replicas if number > 1 else problem.replicas
        idle_us = best_us + least * int(cuts_us[number] - cuts_us[number - 1])
        best_us = max(idle_us, ahead_us + int(due_us[number]))
        ahead_us = max(ahead_us, best_us - int(arrived_us[number]))
    return best_us - int(np.sort(problem.takes_us)[::-1][:allowed].sum())


def bursts_us(problem: OptimumProblem, allowed: int) -> int:
    """Return a lower bound from the work of bursts, replica-µs, for at most `allowed` late events.

    A burst ends at a gap longer than the target. Its work must be done from its first event until its last is due.
    Between two ticks the number of replicas is constant, so that it costs more than in the times of bursts alone.
    """
    times_us, takes_us = problem.times_us, problem.takes_us
    first = np.flatnonzero(np.diff(times_us, prepend=-problem.target_us - 1) > problem.target_us)
    begin_us = times_us[first]
    end_us = times_us[np.append(first[1:], len(times_us)) - 1] + problem.target_us
    whole = end_us <= problem.duration_us
    begin_us, end_us, work_us = begin_us[whole], end_us[whole], np.add.reduceat(takes_us, first)[whole]
    if not len(begin_us):
        return 0
    cuts_us = np.concatenate(([0], problem.ticks_us, [problem.duration_us]))
    before = np.searchsorted(begin_us, cuts_us, side="right")
    covered_us = np.append(0, np.cumsum(end_us - begin_us))[before]
    covered_us -= np.where(before > 0, np.maximum(0, end_us[before - 1] - cuts_us), 0)
    share = np.append(np.diff(covered_us) / np.maximum(1, np.diff(cuts_us)), 0.0)
    touched = np.stack([np.searchsorted(cuts_us, begin_us, side="right") - 1, np.searchsorted(cuts_us, end_us)], axis=1)
    price = 1 / np.maximum.reduceat(share, touched.ravel())[::2]
    more_us = price * (work_us - problem.least_replicas * (end_us - begin_us))
    late_us = price.max() * np.sort(takes_us)[::-1][:allowed].sum()
    return int(problem.least_replicas * problem.duration_us + more_us.clip(0).sum() - late_us)
