"""Can sizes be packed into a number of bins? A search by bin completion (Korf 2002), compiled, and what bounds it.

Sizes are whole numbers between 0 and the capacity, both left out; equal sizes are one size with a count. No fewer bins
will do than the sum of weights over a limit that no bin's weights exceed (dual feasible functions: Fekete, Schepers
2001); with the size itself as weight that is ⌈sum/capacity⌉.
"""
# compiled functions take numbers and arrays one by one, by position

from typing import Final

import numpy as np
from numpy.typing import NDArray

from autoscaler.jit import compiled

Ints = NDArray[np.int64]
FOUND, NONE, GIVEN_UP = 1, 0, -1
REMEMBERED: Final = 2_048
"""States known to lead nowhere; a newer one takes the place of an older."""
_HASH: Final = 0x9E3779B97F4A7C1
MOST_WEIGHTS: Final = 12
"""Ways to weigh that a search goes by: the tightest. More would cost more than they exclude."""
DIVISIONS: Final = 16
"""Weights of the first kind: so many ways to round sizes to parts of the capacity."""


@compiled
def weigh(sizes: Ints, capacity: int, way: int, weights: Ints) -> int:
    """Write what each size weighs in one of the 1 + DIVISIONS + 2·len(sizes) ways; return the limit of a bin."""
    least = int(sizes[(way - 1 - DIVISIONS) % len(sizes)])  # of the ways that leave out what is smaller
    if way == 0:
        weights[:] = sizes
        return capacity
    if way <= DIVISIONS:
        for i in range(len(sizes)):
            times = (way + 1) * sizes[i]
            weights[i] = way * sizes[i] if times % capacity == 0 else times // capacity * capacity
        return way * capacity
    if 2 * least > capacity:
        least = capacity - least + 1
    if way <= DIVISIONS + len(sizes):  # what leaves no room for the least counts as a full bin
        for i in range(len(sizes)):
            weights[i] = capacity if sizes[i] > capacity - least else sizes[i] if sizes[i] >= least else 0
        return capacity
    most = capacity // least
    for i in range(len(sizes)):  # how many of the least could not be there any more
        if 2 * sizes[i] > capacity:
            weights[i] = most - (capacity - sizes[i]) // least
        else:
            weights[i] = 1 if sizes[i] >= least else 0
    return most


@compiled
def lower_bound(sizes: Ints, counts: Ints, capacity: int) -> int:
    """Return a number of bins below which nothing fits."""
    weights = np.empty(len(sizes), np.int64)
    best = 0
    for way in range(1 + DIVISIONS + 2 * len(sizes)):
        limit = weigh(sizes, capacity, way, weights)
        best = max(best, -(-int((weights * counts).sum()) // limit))
    return best


@compiled
def tightest(sizes: Ints, counts: Ints, capacity: int, bins: int) -> tuple[Ints, Ints]:
    """Return weights, shape (ways, sizes), and limits, shape (ways,), that leave least to spare; the sizes first."""
    ways = 1 + DIVISIONS + 2 * len(sizes)
    table, limits, spare = np.empty((ways, len(sizes)), np.int64), np.empty(ways, np.int64), np.empty(ways)
    for way in range(ways):
        limits[way] = weigh(sizes, capacity, way, table[way])
        spare[way] = bins - (table[way] * counts).sum() / limits[way] + 1e-9 * way
    spare[0] = -1.0
    chosen = np.argsort(spare)[:MOST_WEIGHTS]
    return table[chosen], limits[chosen]


@compiled
def fill(
    sizes: Ints, counts: Ints, capacity: int, bins: int, weights: Ints, limits: Ints, steps: int, full: int, share: int,
    content: Ints,
) -> tuple[int, int]:  # fmt: skip
    """Search for a packing into `bins`: FOUND, NONE or GIVEN_UP, and the steps it took.

    Bins are filled one after the other around the largest size left, in every way that no other way dominates (bin
    completion: Korf 2002), within what all bins together may leave empty by each of the `weights`.
    full, share: the first `full` bins leave nothing empty, the others at most `share` times their part of what all may
    (0: any of it). With either, what there is is found quicker, and nothing is proved.
    content: shape (bins, sizes), takes how many of each size are in each bin.
    """
    kinds, ways = len(sizes), len(limits)
    left = counts.copy()
    spare = np.zeros((bins + 1, ways), np.int64)
    room, first = np.zeros(bins + 1, np.int64), np.zeros(bins + 1, np.int64)
    memory = np.full((1 if full or share else REMEMBERED, kinds + 1), -1, np.int64)
    content[:] = 0
    for way in range(ways):
        spare[0, way] = bins * limits[way] - (weights[way] * left).sum()
        if spare[0, way] < 0:
            return NONE, 0
    number, taken, opening = 0, 0, True
    while number >= 0:
        pick, deepest = content[min(number, bins - 1)], spare[number, 0]
        if opening:
            top = _largest(left)
            if top == kinds:
                return FOUND, taken
            if _known(memory, left, bins - number):
                number, opening = number - 1, False
                continue
            first[number], pick[top] = top, 1
            left[top] -= 1
            room[number] = _greedy(sizes, left, pick, top, capacity - sizes[top])
        else:
            taken += 1
            if taken > steps:
                return GIVEN_UP, taken
            room[number] = _next(sizes, left, pick, first[number], room[number], deepest)
            if room[number] < 0:
                left[first[number]] += 1
                pick[first[number]] = 0
                _remember(memory, left, bins - number)
                number -= 1
                continue
        most = 0 if number < full else deepest if share == 0 else share * deepest // (bins - number) + 1
        opening = room[number] <= most and not _dominated(sizes, left, pick, first[number], room[number])
        for way in range(ways if opening else 0):
            spare[number + 1, way] = spare[number, way] - limits[way] + (weights[way] * pick).sum()
            opening = opening and spare[number + 1, way] >= 0
        if opening:
            number += 1
    return (GIVEN_UP if full or share else NONE), taken


@compiled
def _largest(left: Ints) -> int:
    """Return which is the largest size left; their number where nothing is."""
    for i in range(len(left)):
        if left[i]:
            return i
    return len(left)


@compiled
def _greedy(sizes: Ints, left: Ints, pick: Ints, begin: int, room: int) -> int:
    """Put as many as fit of each size from `begin` on, larger ones first; return the room that is left."""
    for i in range(begin, len(sizes)):
        more = min(left[i], room // sizes[i])
        if more > 0:
            pick[i] += more
            left[i] -= more
            room -= more * sizes[i]
    return room


@compiled
def _next(sizes: Ints, left: Ints, pick: Ints, first: int, room: int, most: int) -> int:
    """Change to the next content of a bin that may leave at most `most` empty; return its room; -1: there is none."""
    smaller = 0  # what is there of smaller sizes than i
    for i in range(len(sizes) - 1, first - 1, -1):
        at_least = 1 if i == first else 0
        if pick[i] > at_least:
            if room + sizes[i] - smaller <= most:
                pick[i] -= 1
                left[i] += 1
                return _greedy(sizes, left, pick, i + 1, room + sizes[i])
            room += (pick[i] - at_least) * sizes[i]
            left[i] += pick[i] - at_least
            pick[i] = at_least
        smaller += left[i] * sizes[i]
    return -1


@compiled
def _dominated(sizes: Ints, left: Ints, pick: Ints, first: int, room: int) -> bool:
    """Return whether something in the bin, its first left out, could change places with one larger thing outside.

    Nothing, one thing, or two things that are no larger than the one outside: where that was, they fit.
    """
    for y in range(first, len(sizes)):
        if left[y] == 0:
            continue
        if sizes[y] <= room:
            return True
        for i in range(y, len(sizes)):
            inside = pick[i] - (1 if i == first else 0)
            if inside <= 0:
                continue
            if i > y and sizes[y] - sizes[i] <= room:
                return True
            for j in range(i, len(sizes)):
                if (j == i and inside < 2) or pick[j] == 0:
                    continue
                both = sizes[i] + sizes[j]
                if both <= sizes[y] <= both + room:
                    return True
    return False


@compiled
def _place(left: Ints) -> int:
    code = 0
    for i in range(len(left)):
        code = (code ^ left[i]) * _HASH
        code ^= code >> 29
    return code


@compiled
def _known(memory: Ints, left: Ints, bins: int) -> bool:
    """Return whether `left` is known not to fit into so many bins."""
    row = memory[_place(left) % len(memory)]
    return row[0] >= bins and bool((row[1:] == left).all())


@compiled
def _remember(memory: Ints, left: Ints, bins: int) -> None:
    row = memory[_place(left) % len(memory)]
    row[0] = bins
    row[1:] = left
