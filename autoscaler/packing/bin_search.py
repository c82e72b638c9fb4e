"""Least bins, compiled: what greedy filling needs, what cannot be excluded, and a search where the two differ.

Sizes are whole numbers, and every size lies between 0 and the capacity, both left out. Equal sizes are one size with a
count.
"""
# compiled functions take numbers and arrays one by one, by position

from typing import Final

import numpy as np

from autoscaler.jit import compiled
from autoscaler.packing.bin_weights import Ints, lower_bound, tightest

FOUND, NONE, GIVEN_UP = 1, 0, -1
REMEMBERED: Final = 2_048
"""States known to lead nowhere; a newer one takes the place of an older."""
_HASH: Final = 0x9E3779B97F4A7C1
HASTE: Final = 3_000
"""Steps of each quick way."""


@compiled
def first_fit(sizes: Ints, counts: Ints, capacity: int, content: Ints) -> int:
    """Return how many bins first fit decreasing takes. content: as of `least_bins`."""
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


@compiled
def least_bins(sizes: Ints, counts: Ints, capacity: int, steps: int, content: Ints) -> tuple[int, int, int]:
    """Return bins that do, bins of which one less is known not to do, and the steps that the search took.

    The two differ only where `steps` did not suffice.
    sizes: largest first. content: shape (items, sizes), takes how many of each size the bins hold that do.
    """
    enough = first_fit(sizes, counts, capacity, content)
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
def least_of_rows(rows: Ints, capacity: int, steps: int, chosen: Ints, enough: Ints, least: Ints) -> None:
    """Write for each of the `chosen` rows what `least_bins` returns, what has bins of its own included.

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
            bins = least_bins(sizes[:kinds], counts[:kinds], capacity, steps, content)
        enough[number], least[number] = alone + bins[0], alone + bins[1]
