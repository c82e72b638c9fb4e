"""From placements, tick by tick, to plans of named replicas."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import chain, count, islice
from typing import Final

from autoscaler.optimum.serving import NONE

PREFIX: Final = "payment"

Schedule = tuple[tuple[int, tuple[str, ...], tuple[str, ...]], ...]
"""(µs, replicas from then on, the owner of each partition), at ticks, where it changes."""
Step = tuple[int, Sequence[int], int, Sequence[int]]
"""(µs, the bin of each partition, replicas, which bin of the step before each bin was; NOBODY: another replica)."""


def plans_of(path: Iterable[Step], first: Sequence[int], replicas: int, startup_us: int) -> Schedule:
    """Return the path as plans of named replicas; who needs a start-up is in them so long before.

    first: the replica of each partition before the path, of as many as there are then.
    """
    names = [f"{PREFIX}-{number}" for number in range(replicas)]
    holding = [names[owner] for owner in dict.fromkeys(first)]
    idle = [name for name in names if name not in holding]
    fresh = count(len(names))
    steps: list[tuple[int, tuple[str, ...], tuple[str, ...]]] = []
    for at_us, placement, paid, heirs in path:
        bins = max(placement) + 1
        taken = [holding[heir] if heir != NONE else "" for heir in heirs[:bins]]
        spare = [*idle, *(name for name in holding if name not in taken)]
        free = chain(spare, (f"{PREFIX}-{number}" for number in fresh))
        holding = [name or next(free) for name in taken]
        idle = list(islice(free, paid - bins))
        owners = tuple(holding[bin_] for bin_ in placement)
        steps.append((at_us, (*holding, *idle), owners))
    return _requested_ahead(steps, startup_us)


def _requested_ahead(steps: Sequence[tuple[int, tuple[str, ...], tuple[str, ...]]], startup_us: int) -> Schedule:
    """Return the plans, each with the replicas that a later one needs within a start-up; without those that repeat."""
    plans: list[tuple[int, tuple[str, ...], tuple[str, ...]]] = []
    times_us = [at_us for at_us, _, _ in steps]
    for index, (at_us, names, owners) in enumerate(steps):
        following_us = times_us[index + 1] if index + 1 < len(steps) else at_us
        soon = bisect_left(times_us, following_us + startup_us) if startup_us else index + 1
        replicas = tuple(dict.fromkeys(chain(names, *(more for _, more, _ in steps[index + 1 : soon]))))
        if not plans or plans[-1][1:] != (replicas, owners):
            plans.append((at_us, replicas, owners))
    return tuple(plans)
