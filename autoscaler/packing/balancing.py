"""The inner loop of Least-Loaded, compiled: bins in a row, the least loaded first."""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from autoscaler.jit import compiled
from autoscaler.packing.open_consumers import Loads, Ranks

Order = NDArray[np.int32]
"""Numbers of bins, least loaded first."""
NO_ROOM: Final = -1


class Bins(NamedTuple):
    """What bins hold."""

    rate: Loads
    lag: Loads
    items: Ranks


@compiled
def _less_loaded(bins: Bins, one: int, other: int) -> bool:
    if bins.rate[one] != bins.rate[other]:
        return bool(bins.rate[one] < bins.rate[other])
    if bins.lag[one] != bins.lag[other]:
        return bool(bins.lag[one] < bins.lag[other])
    if bins.items[one] != bins.items[other]:
        return bool(bins.items[one] < bins.items[other])
    return one < other


@compiled
def _place_of(bins: Bins, row: Order, low: int, high: int, chosen: int) -> int:
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
    bins = Bins(np.zeros(count), np.zeros(count), np.zeros(count, np.int64))
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
