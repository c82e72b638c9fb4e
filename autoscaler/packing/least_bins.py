"""Bin packing without approximation, for the partitions of one second. All sizes are whole events."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from autoscaler.jit import compiled
from autoscaler.packing.bin_completion import FOUND, GIVEN_UP, NONE, Ints, fill, lower_bound, tightest

Sizes = tuple[int, ...]
MOST_STEPS: Final = 100_000
"""Contents of bins that one search tries before it gives up: some hundredths of a second."""
FIRST_STEPS: Final = 500
"""What every row may take; the rest is for those that need more."""
ALL_STEPS: Final = 20_000_000
"""What all rows together may take beyond that: some seconds."""
HASTE: Final = 3_000
"""Steps of each quick way."""


@dataclass(frozen=True, slots=True)
class Packing:
    """Bins, each with the sizes in it, largest first; and the least number of bins that has not been excluded."""

    bins: tuple[Sizes, ...]
    least: int
    """Equals the number of bins, unless the search was given up: then fewer may do, but not fewer than this."""


@lru_cache(maxsize=65_536)
def packed(items: Sizes, capacity: int) -> Packing:
    """Pack `items` (largest first, zeros are left out) into the fewest bins; an item above `capacity` is alone."""
    alone = tuple((item,) for item in items if item >= capacity)
    rest = [item for item in items if 0 < item < capacity]
    if not rest:
        return Packing(alone, len(alone))
    ascending, numbers = np.unique(np.array(rest, np.int64), return_counts=True)
    sizes, counts = ascending[::-1].copy(), numbers[::-1].astype(np.int64)
    content = np.empty((len(rest), len(sizes)), np.int64)
    enough, least, _ = _least_of_sizes(sizes, counts, capacity, MOST_STEPS, content)
    found = tuple(tuple(np.repeat(sizes, row).tolist()) for row in content[:enough])
    return Packing(alone + found, len(alone) + least)


def least_bins(rows: Ints, capacity: int) -> tuple[Ints, Ints]:
    """Return for each row how many bins hold its sizes, and how many cannot be excluded: the same in nearly all rows.

    rows: sizes, largest first, shape (rows, partitions); zeros need no room, a size above `capacity` is alone in a bin.
    The two differ where a search was given up, after MOST_STEPS, or when all rows together had taken ALL_STEPS.
    """
    enough, least = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int64)
    _least_of_rows(rows, capacity, FIRST_STEPS, np.arange(len(rows)), enough, least)
    unsure = np.flatnonzero(least < enough)
    steps = min(MOST_STEPS, ALL_STEPS // max(1, len(unsure)))
    if steps > FIRST_STEPS:
        _least_of_rows(rows, capacity, steps, unsure, enough, least)
    return enough, least


@compiled
def _least_of_sizes(sizes: Ints, counts: Ints, capacity: int, steps: int, content: Ints) -> tuple[int, int, int]:
    """Return bins that do, bins of which one less is known not to do, and the steps that the search took.

    The two differ only where `steps` did not suffice.
    sizes: largest first. content: shape (items, sizes), takes how many of each size the bins hold that do.
    """
    enough = _first_fit(sizes, counts, capacity, content)
    least = -(-int((sizes * counts).sum()) // capacity)
    if least < enough:
        least = max(least, lower_bound(sizes, counts, capacity))
    known, total, bins = True, 0, least
    while bins < enough:
        found, taken = _search(sizes, counts, capacity, bins, steps - total if known else HASTE, content)
        total += taken
        if found == FOUND:
            enough = bins
        bins += 1
        known = known and found == NONE
        if known:
            least = bins
    return enough, min(least, enough), total


@compiled
def _search(sizes: Ints, counts: Ints, capacity: int, bins: int, steps: int, content: Ints) -> tuple[int, int]:
    """Try the quick ways first, then the one that finds out. As `fill`."""
    weights, limits = tightest(sizes, counts, capacity, bins)
    tried, found, total = np.empty((bins, len(sizes)), np.int64), GIVEN_UP, 0
    for way in range(5):
        full, share = bins * (0, 80, 50, 90, 0)[way] // 100, (1, 0, 1, 0, 0)[way]
        some = min(steps - total, steps if way == 4 else HASTE)
        if found == GIVEN_UP and some > 0:
            found, taken = fill(sizes, counts, capacity, bins, weights, limits, some, full, share, tried)
            total += taken
    if found == FOUND:
        content[:bins] = tried
        content[bins:] = 0
    return found, total


@compiled
def _least_of_rows(rows: Ints, capacity: int, steps: int, chosen: Ints, enough: Ints, least: Ints) -> None:
    """Write for each of the `chosen` rows what `_least_of_sizes` returns, what has bins of its own included.

    rows: sizes, largest first, shape (rows, partitions). A size of the capacity or above has a bin of its own.
    """
    sizes, counts = np.empty(rows.shape[1], np.int64), np.empty(rows.shape[1], np.int64)
    for number in chosen:
        kinds, alone, items = 0, 0, 0
        for size in rows[number]:
            if size >= capacity:
                alone += 1
            elif size > 0:
                items += 1
                if kinds == 0 or sizes[kinds - 1] != size:
                    sizes[kinds], counts[kinds] = size, 0
                    kinds += 1
                counts[kinds - 1] += 1
        bins = 0, 0, 0
        if items:
            content = np.empty((items, kinds), np.int64)
            bins = _least_of_sizes(sizes[:kinds], counts[:kinds], capacity, steps, content)
        enough[number], least[number] = alone + bins[0], alone + bins[1]


@compiled
def _first_fit(sizes: Ints, counts: Ints, capacity: int, content: Ints) -> int:
    """Return how many bins first fit decreasing takes. content: as of `_least_of_sizes`."""
    room = np.empty(len(content), np.int64)
    content[:] = 0
    bins = 0
    for i in range(len(sizes)):
        number = 0
        for _ in range(counts[i]):
            while number < bins and room[number] < sizes[i]:
                number += 1
            if number == bins:
                room[bins] = capacity
                bins += 1
            room[number] -= sizes[i]
            content[number, i] += 1
    return bins
