"""Least-Loaded in two dimensions (Ezzeddine, Baude, Huet, CLOSER 2024): few bins, and balanced ones."""

import math
from collections.abc import Sequence
from heapq import heappop, heappush

from autoscaler.packing.bins import UNLIMITED, Bin, Capacity, Item

Sized = tuple[float, float, Item]
"""λ and lag that the item takes of a bin, and the item."""
ROUNDING = 1e-9
"""Relative slack of the lower bound, so that a rounding error never skips a count that would have succeeded."""


def least_loaded(items: Sequence[Item], capacity: Capacity, *, at_least: int = 1) -> tuple[Bin, ...]:
    """Pack `items` into the first number of bins ≥ `at_least` at which every item finds room.

    Largest λ first, each item into the bin with the least λ in which both capacities hold. Ties: items by lag, then
    partition number; bins by lag, then number of items, then age. An item bigger than a bin counts as exactly one full
    bin, so only idle partitions can join it.

    Ends: with as many bins as items each item finds an empty bin, and a bin holds any item (after the above).
    """
    sized = _sized(items, capacity)
    count = max(at_least, _lower_bound(sized, capacity))
    # No binary search: that k bins suffice does not imply that k + 1 do (a small item placed elsewhere can leave a
    # later one without room). Counts below the sum of the loads cannot succeed, so leaving them out changes nothing.
    while (bins := _fill(sized, capacity, count)) is None:
        count += 1
    return bins


def least_loaded_below(items: Sequence[Item], capacity: Capacity, limit: int) -> tuple[Bin, ...] | None:
    """Return what `least_loaded` returns, or None where that has `limit` bins or more: stops looking there."""
    sized = _sized(items, capacity)
    tries = (_fill(sized, capacity, count) for count in range(max(1, _lower_bound(sized, capacity)), limit))
    return next((bins for bins in tries if bins is not None), None)


def spread(items: Sequence[Item], count: int) -> tuple[Bin, ...]:
    """Pack `items` into exactly `count` bins, as evenly as Least-Loaded can, whatever they hold then."""
    bins = _fill(_sized(items, UNLIMITED), UNLIMITED, count)
    assert bins is not None, "a bin without limits has room"
    return bins


def _sized(items: Sequence[Item], capacity: Capacity) -> list[Sized]:
    """Return (λ, lag, item) in the order of placement, where λ and lag are what the item takes of a bin."""
    sized = [
        (capacity.arrival_rate, capacity.lag, item)
        if capacity.exceeded_by(item.arrival_rate, item.lag)
        else (item.arrival_rate, item.lag, item)
        for item in items
    ]
    sized.sort(key=lambda one: (-one[0], -one[1], one[2].partition))
    return sized


def _lower_bound(sized: Sequence[Sized], capacity: Capacity) -> int:
    """Return how many bins the sums alone demand in the tighter dimension."""
    by_rate = sum(one[0] for one in sized) / capacity.arrival_rate
    by_lag = sum(one[1] for one in sized) / capacity.lag
    return math.ceil(max(by_rate, by_lag) * (1 - ROUNDING))


def _fill(sized: Sequence[Sized], capacity: Capacity, count: int) -> tuple[Bin, ...] | None:
    """Place all items into `count` bins, or return None when one of them finds no room."""
    heap = [(0.0, 0.0, 0, index) for index in range(count)]  # λ, lag, items held, index: sorted already, so a heap
    contents: list[list[Item]] = [[] for _ in range(count)]
    for arrival_rate, lag, item in sized:
        passed = []
        while True:
            # The room that is left is compared, not the new sum: beside a full bin even 1e-300 must not fit.
            if not heap or arrival_rate > capacity.arrival_rate - heap[0][0]:
                return None  # the least loaded bin lacks the rate, so all others do
            chosen = heappop(heap)
            if lag <= capacity.lag - chosen[1]:
                break
            passed.append(chosen)
        used_rate, used_lag, held, index = chosen
        heappush(heap, (used_rate + arrival_rate, used_lag + lag, held + 1, index))
        for bin_without_room in passed:
            heappush(heap, bin_without_room)
        contents[index].append(item)
    return tuple(Bin(tuple(content)) for content in contents)
