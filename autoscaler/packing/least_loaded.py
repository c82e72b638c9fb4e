"""Least-Loaded in two dimensions (Ezzeddine, Baude, Huet, CLOSER 2024): few bins, with balanced loads."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush, heapreplace
from itertools import count
from typing import Final

import numpy as np
from numpy.typing import NDArray

from autoscaler.jit import compiled
from autoscaler.packing.bins import UNLIMITED, Bin, Capacity, Item

Ranks = NDArray[np.int64]
Loads = NDArray[np.float64]
ROUNDING: Final = 1e-9
"""Relative slack of the lower bound, so that a rounding error never skips a count that would have succeeded."""
NO_ROOM: Final = -1


def least_loaded(items: Sequence[Item], capacity: Capacity, *, at_least: int = 1) -> tuple[Bin, ...]:
    """Pack `items` into the smallest number of bins ≥ `at_least` at which every item fits.

    Items are placed largest λ first, each into the bin with the least λ in which both capacities hold. Ties
    between items: larger lag first, then lower partition. Ties between bins: less lag, then fewer items, then the older
    bin. An item bigger than a bin counts as exactly one full bin, so only idle partitions can join it.

    The search always ends: with as many bins as items, each item finds an empty bin, and any item fits into it.
    """
    # No binary search: if k bins suffice, k + 1 may not (a small item placed elsewhere can leave a later one without
    # room). Counts below the sum of the loads cannot succeed, so they are skipped.
    sized = _Sized.of(items, capacity)
    tries = (sized.filled(bins) for bins in count(max(at_least, sized.lower_bound)))
    return next(bins for bins in tries if bins is not None)


def least_loaded_below(items: Sequence[Item], capacity: Capacity, limit: int) -> tuple[Bin, ...] | None:
    """Return the result of `least_loaded`, or None if it has `limit` bins or more. The search stops there."""
    sized = _Sized.of(items, capacity)
    tries = (sized.filled(bins) for bins in range(max(1, sized.lower_bound), limit))
    return next((bins for bins in tries if bins is not None), None)


def spread(items: Sequence[Item], count: int) -> tuple[Bin, ...]:
    """Pack `items` into exactly `count` bins without limits, as evenly as Least-Loaded can."""
    bins = _Sized.of(items, UNLIMITED).filled(count)
    assert bins is not None, "a bin without limits has room"
    return bins


@dataclass(frozen=True, slots=True, eq=False)
class _Sized:
    """Items in the order of placement, each with the part of a bin that it takes."""

    items: Sequence[Item]
    rates: Loads
    lags: Loads
    capacity: Capacity

    @classmethod
    def of(cls, items: Sequence[Item], capacity: Capacity) -> "_Sized":
        """Sort the items, and count each that is bigger than a bin as one full bin."""
        rates = np.fromiter((item.arrival_rate for item in items), np.float64, len(items))
        lags = np.fromiter((item.lag for item in items), np.float64, len(items))
        partitions = np.fromiter((item.partition for item in items), np.int64, len(items))
        bigger = (rates > capacity.arrival_rate) | (lags > capacity.lag)
        rates[bigger], lags[bigger] = capacity.arrival_rate, capacity.lag
        order = np.lexsort((partitions, -lags, -rates))
        return cls([items[at] for at in order.tolist()], rates[order], lags[order], capacity)

    @property
    def lower_bound(self) -> int:
        """Number of bins that the total load needs in the tighter dimension."""
        by_rate = float(self.rates.sum()) / self.capacity.arrival_rate
        by_lag = float(self.lags.sum()) / self.capacity.lag
        return math.ceil(max(by_rate, by_lag) * (1 - ROUNDING))

    def filled(self, bins: int) -> tuple[Bin, ...] | None:
        """Place all items into `bins` bins. Return None if one does not fit."""
        places = fill(self.rates, self.lags, self.capacity.arrival_rate, self.capacity.lag, bins)
        if (places == NO_ROOM).any():
            return None
        contents: list[list[Item]] = [[] for _ in range(bins)]
        for item, place in zip(self.items, places.tolist(), strict=True):
            contents[place].append(item)
        return tuple(Bin(tuple(content)) for content in contents)


@compiled
def fill(rates: Loads, lags: Loads, rate_capacity: float, lag_capacity: float, count: int) -> Ranks:
    """Put each item into the least loaded bin in which both capacities hold. Return the bin of each.

    The least loaded bin has the least rate; ties: least lag, fewest items, lowest number. The first item that
    fits nowhere, and all after it, get NO_ROOM.
    """
    bins = [(0.0, 0.0, 0, number) for number in range(count)]  # sorted, hence a heap
    full = [(0.0, 0.0, 0, 0) for _ in range(0)]
    places = np.full(rates.size, NO_ROOM)
    for item in range(rates.size):
        # Compare with the remaining room, not the new sum: not even 1e-300 may fit into a full bin.
        while bins and lags[item] > lag_capacity - bins[0][1]:
            full.append(heappop(bins))
        if not bins or rates[item] > rate_capacity - bins[0][0]:
            return places  # the bin with the least rate has no room, so no other has
        rate, lag, items, number = bins[0]
        heapreplace(bins, (rate + rates[item], lag + lags[item], items + 1, number))
        places[item] = number
        while full:
            heappush(bins, full.pop())
    return places


@compiled
def fill_level(falling: Loads, count: int) -> float:
    """Return about the lowest load that the fullest of `count` bins can have. falling: loads, largest first.

    An item that exceeds the mean of the others has a bin of its own and does not count.
    """
    alone, rest = 0, falling.sum()
    while alone < count - 1 and falling[alone] > rest / (count - alone):
        rest -= falling[alone]
        alone += 1
    heap, highest = [0.0 for _ in range(count - alone)], 1e-9
    for load in falling[alone:]:  # each item goes to the bin with the least load
        highest = max(highest, heap[0] + load)
        heapreplace(heap, heap[0] + load)
    return highest
