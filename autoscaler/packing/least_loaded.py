"""Least-Loaded in two dimensions (Ezzeddine, Baude, Huet, CLOSER 2024): few bins, and balanced ones."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from autoscaler.jit import compiled
from autoscaler.packing.bins import UNLIMITED, Bin, Capacity, Item

Ranks = NDArray[np.int64]
Loads = NDArray[np.float64]
Order = NDArray[np.int32]
"""Numbers of bins, least loaded first."""

ROUNDING: Final = 1e-9
"""Relative slack of the lower bound, so that a rounding error never skips a count that would have succeeded."""
NO_ROOM: Final = -1


def least_loaded(items: Sequence[Item], capacity: Capacity, *, at_least: int = 1) -> tuple[Bin, ...]:
    """Pack `items` into the first number of bins ≥ `at_least` at which every item finds room.

    Largest λ first, each item into the bin with the least λ in which both capacities hold. Ties: items by lag, then
    partition number; bins by lag, then number of items, then age. An item bigger than a bin counts as exactly one full
    bin, so only idle partitions can join it.

    Ends: with as many bins as items each item finds an empty bin, and a bin holds any item (after the above).
    """
    # No binary search: that k bins suffice does not imply that k + 1 do (a small item placed elsewhere can leave a
    # later one without room). Counts below the sum of the loads cannot succeed, so leaving them out changes nothing.
    sized = _Sized.of(items, capacity)
    tries = (sized.filled(bins) for bins in count(max(at_least, sized.lower_bound)) if sized.may_do(bins))
    return next(bins for bins in tries if bins is not None)


def least_loaded_below(items: Sequence[Item], capacity: Capacity, limit: int) -> tuple[Bin, ...] | None:
    """Return what `least_loaded` returns, or None where that has `limit` bins or more: stops looking there."""
    sized = _Sized.of(items, capacity)
    tries = (sized.filled(bins) for bins in range(max(1, sized.lower_bound), limit) if sized.may_do(bins))
    return next((bins for bins in tries if bins is not None), None)


def spread(items: Sequence[Item], count: int) -> tuple[Bin, ...]:
    """Pack `items` into exactly `count` bins, as evenly as Least-Loaded can, whatever they hold then."""
    bins = _Sized.of(items, UNLIMITED).filled(count)
    assert bins is not None, "a bin without limits has room"
    return bins


@dataclass(frozen=True, slots=True, eq=False)
class _Sized:
    """Items in the order of placement, with what each takes of a bin."""

    items: Sequence[Item]
    rates: Loads
    lags: Loads
    capacity: Capacity
    least_lags: Loads
    """Among the items up to this one."""
    most_lags: Loads
    """Among the items from this one on."""

    @classmethod
    def of(cls, items: Sequence[Item], capacity: Capacity) -> "_Sized":
        """Cut what is bigger than a bin down to one, and sort."""
        rates = np.fromiter((item.arrival_rate for item in items), np.float64, len(items))
        lags = np.fromiter((item.lag for item in items), np.float64, len(items))
        partitions = np.fromiter((item.partition for item in items), np.int64, len(items))
        bigger = (rates > capacity.arrival_rate) | (lags > capacity.lag)
        rates[bigger], lags[bigger] = capacity.arrival_rate, capacity.lag
        order = np.lexsort((partitions, -lags, -rates))
        lags = lags[order]
        return cls(
            [items[at] for at in order.tolist()],
            rates[order],
            lags,
            capacity,
            np.minimum.accumulate(lags),
            np.maximum.accumulate(lags[::-1])[::-1],
        )

    @property
    def lower_bound(self) -> int:
        """How many bins the sums alone demand in the tighter dimension."""
        by_rate = float(self.rates.sum()) / self.capacity.arrival_rate
        by_lag = float(self.lags.sum()) / self.capacity.lag
        return math.ceil(max(by_rate, by_lag) * (1 - ROUNDING))

    def may_do(self, bins: int) -> bool:
        """Tell quickly of some numbers of bins that they cannot do: a later item fits beside none of the first ones.

        The first items, one for each bin, all get an empty bin, for nothing is less loaded.
        """
        if bins >= len(self.items):
            return True
        beside_rate = self.rates[bins] <= self.capacity.arrival_rate - self.rates[bins - 1]
        return bool(beside_rate and self.most_lags[bins] <= self.capacity.lag - self.least_lags[bins - 1])

    def filled(self, bins: int) -> tuple[Bin, ...] | None:
        """Place all items into so many bins, or return None when one of them finds no room."""
        places = fill(self.rates, self.lags, self.capacity.arrival_rate, self.capacity.lag, bins)
        if (places == NO_ROOM).any():
            return None
        contents: list[list[Item]] = [[] for _ in range(bins)]
        for item, place in zip(self.items, places.tolist(), strict=True):
            contents[place].append(item)
        return tuple(Bin(tuple(content)) for content in contents)


class _Held(NamedTuple):
    """What bins hold."""

    rate: Loads
    lag: Loads
    items: Ranks


@compiled
def _less_loaded(bins: _Held, one: int, other: int) -> bool:
    if bins.rate[one] != bins.rate[other]:
        return bool(bins.rate[one] < bins.rate[other])
    if bins.lag[one] != bins.lag[other]:
        return bool(bins.lag[one] < bins.lag[other])
    if bins.items[one] != bins.items[other]:
        return bool(bins.items[one] < bins.items[other])
    return one < other


@compiled
def _place_of(bins: _Held, row: Order, low: int, high: int, chosen: int) -> int:
    """Return where in row[low:high] the bins begin that are more loaded than `chosen`."""
    while low < high:
        middle = (low + high) // 2
        if _less_loaded(bins, row[middle], chosen):
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def _insert(row: Order, at: int, head: int, tail: int, to: int) -> int:
    """Move the bin at `at` to before `to` in the order row[head:tail]; return by how much head and tail grow.

    Positions are made unsigned: for a signed one each access would look whether it counts from the end, and what the
    compiler can move as a block otherwise it would move one by one.
    """
    moving = row[at]
    if to - at <= at - head + tail - to:
        for behind in range(at + 1, to):
            row[np.uint64(behind - 1)] = row[np.uint64(behind)]
        row[to - 1] = moving
        return 0
    # usually: from the front to the end, so that moving what lies around is less than what lies between
    for before in range(at - head):
        row[np.uint64(at - before)] = row[np.uint64(at - before - 1)]
    for behind in range(tail - to):
        row[np.uint64(tail - behind)] = row[np.uint64(tail - behind - 1)]
    row[to] = moving
    return 1


@compiled
def fill(rates: Loads, lags: Loads, rate_capacity: float, lag_capacity: float, count: int) -> Ranks:
    """Return the bin of each item, each put into the least loaded bin where both capacities hold.

    Least loaded: by rate, then lag, then number of items, then number of the bin. NO_ROOM from the first item on that
    fits nowhere.
    """
    bins = _Held(np.zeros(count), np.zeros(count), np.zeros(count, np.int64))
    row = np.empty(count + rates.size, np.int32)  # the bins are row[head:tail]
    row[:count] = np.arange(count)
    head, tail = 0, count
    places = np.full(rates.size, NO_ROOM)
    for item in range(rates.size):
        at = head
        while True:
            # The room that is left is compared, not the new sum: beside a full bin even 1e-300 must not fit.
            if at == tail or rates[item] > rate_capacity - bins.rate[row[at]]:
                return places  # this bin lacks the rate, so all after it do
            if lags[item] <= lag_capacity - bins.lag[row[at]]:
                break
            at += 1
        chosen = row[at]
        bins.rate[chosen] += rates[item]
        bins.lag[chosen] += lags[item]
        bins.items[chosen] += 1
        places[item] = chosen
        grown = _insert(row, at, head, tail, _place_of(bins, row, at + 1, tail, chosen))
        head, tail = head + grown, tail + grown
    return places
