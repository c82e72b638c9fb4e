"""Bins get the names of replicas so that as little arrival rate as possible changes its owner."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, chain, count

import numpy as np

from autoscaler.packing.bins import Bin
from autoscaler.packing.matching import NONE, Overlap, best_matching

RATE_UNITS = 1_000_000
"""Rates are counted in millionths of an event/s: integers add exactly, so what is best does not hang on rounding."""


def name_bins(bins: Sequence[Bin], owners: Mapping[int, str], names: Sequence[str], prefix: str) -> tuple[str, ...]:
    """Return one replica name for each bin, all different.

    owners: partition → its owner now; an owner outside `names` is gone.
    names: replicas that may stay, preferred first. Bins beyond them get `prefix`-<smallest unused ordinal>.
    The rate that stays with its owner is the largest possible (to a millionth of an event/s), then the number of
    partitions that stay.
    """
    numbers = {name: number for number, name in enumerate(names)}
    best = best_matching(_overlap(bins, owners, numbers), len(names)).tolist()
    kept = {names[number] for number in best if number != NONE}
    spare = chain((name for name in names if name not in kept), fresh_names(prefix, {*names, *owners.values()}))
    return tuple(next(spare) if number == NONE else names[number] for number in best)


def fresh_names(prefix: str, taken: set[str]) -> Iterator[str]:
    """Yield `prefix`-0, `prefix`-1, … without those already taken."""
    return (name for ordinal in count() if (name := f"{prefix}-{ordinal}") not in taken)


def _overlap(bins: Sequence[Bin], owners: Mapping[int, str], numbers: Mapping[str, int]) -> Overlap:
    shared: list[dict[int, int]] = []
    for one in bins:
        stays: dict[int, int] = {}
        for item in one.items:
            number = numbers.get(owners.get(item.partition, ""))
            if number is not None:
                # one unit for the handover itself: moving an idle partition is not free either
                stays[number] = stays.get(number, 0) + round(item.arrival_rate * RATE_UNITS) + 1
        shared.append(stays)
    return Overlap(
        np.array([0, *accumulate(map(len, shared))], np.int64),
        np.array([number for stays in shared for number in stays], np.int64),
        np.array([weight for stays in shared for weight in stays.values()], np.int64),
    )
