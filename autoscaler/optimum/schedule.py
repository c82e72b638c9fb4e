"""Converts placements at ticks to plans with named replicas."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import chain, count, islice
from typing import Final

from autoscaler.optimum.serving import NONE

PREFIX: Final = "payment"

Schedule = tuple[tuple[int, tuple[str, ...], tuple[str, ...]], ...]
"""(Time in µs, replicas from then on, owner of each partition), for each tick with a change."""
Step = tuple[int, Sequence[int], int, Sequence[int]]
"""(Time in µs, bin of each partition, replicas, previous bin of each bin's replica; NONE: another replica)."""


def plans_of(path: Iterable[Step], first: Sequence[int], replicas: int, startup_us: int) -> Schedule:
    """Return the path as plans with named replicas. A replica is requested one start-up time before it serves.

    first: replica of each partition before the path. replicas: number of replicas before the path.
    """
    names = [f"{PREFIX}-{number}" for number in range(replicas)]
    serving = [names[owner] for owner in dict.fromkeys(first)]
    idle = [name for name in names if name not in serving]
    fresh = count(len(names))
    steps: list[tuple[int, tuple[str, ...], tuple[str, ...]]] = []
    for at_us, placement, paid, previous in path:
        bins = max(placement) + 1
        taken = [serving[before] if before != NONE else "" for before in previous[:bins]]
        spare = [*idle, *(name for name in serving if name not in taken)]
        free = chain(spare, (f"{PREFIX}-{number}" for number in fresh))
        serving = [name or next(free) for name in taken]
        idle = list(islice(free, paid - bins))
        owners = tuple(serving[bin_] for bin_ in placement)
        steps.append((at_us, (*serving, *idle), owners))
    return _requested_ahead(steps, startup_us)


def _requested_ahead(steps: Sequence[tuple[int, tuple[str, ...], tuple[str, ...]]], startup_us: int) -> Schedule:
    """Return the plans with the replicas that later plans need within a start-up time, without repetitions."""
    plans: list[tuple[int, tuple[str, ...], tuple[str, ...]]] = []
    times_us = [at_us for at_us, _, _ in steps]
    for index, (at_us, names, owners) in enumerate(steps):
        following_us = times_us[index + 1] if index + 1 < len(steps) else at_us
        soon = bisect_left(times_us, following_us + startup_us) if startup_us else index + 1
        replicas = tuple(dict.fromkeys(chain(names, *(more for _, more, _ in steps[index + 1 : soon]))))
        if not plans or plans[-1][1:] != (replicas, owners):
            plans.append((at_us, replicas, owners))
    return tuple(plans)
