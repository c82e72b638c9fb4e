"""Bin packing without approximation, for the partitions of one second. All sizes are whole events."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from autoscaler.packing import bin_search
from autoscaler.packing.bin_weights import Ints

Sizes = tuple[int, ...]
MOST_STEPS: Final = 100_000
"""Contents of bins that one search tries before it gives up: some hundredths of a second."""
FIRST_STEPS: Final = 500
"""What every row may take; the rest is for those that need more."""
ALL_STEPS: Final = 20_000_000
"""What all rows together may take beyond that: some seconds."""


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
    enough, least, _ = bin_search.least_bins(sizes, counts, capacity, MOST_STEPS, content)
    found = tuple(tuple(np.repeat(sizes, row).tolist()) for row in content[:enough])
    return Packing(alone + found, len(alone) + least)


def least_bins(rows: Ints, capacity: int) -> tuple[Ints, Ints]:
    """Return for each row how many bins hold its sizes, and how many cannot be excluded: the same in nearly all rows.

    rows: sizes, largest first, shape (rows, partitions); zeros need no room, a size above `capacity` is alone in a bin.
    The two differ where a search was given up, after MOST_STEPS, or when all rows together had taken ALL_STEPS.
    """
    enough, least = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int64)
    bin_search.least_of_rows(rows, capacity, FIRST_STEPS, np.arange(len(rows)), enough, least)
    unsure = np.flatnonzero(least < enough)
    steps = min(MOST_STEPS, ALL_STEPS // max(1, len(unsure)))
    if steps > FIRST_STEPS:
        bin_search.least_of_rows(rows, capacity, steps, unsure, enough, least)
    return enough, least
