"""Bin packing without approximation, for the partitions of one second. All sizes are whole events."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

Sizes = tuple[int, ...]
SEARCH_STEPS: Final = 20_000
"""Choices that a search tries before it gives up, some hundredths of a second; real workloads need some hundreds."""
MOST_BINS: Final = 100
"""Beyond it nothing is searched: the choices are too many, and one bin more or less is below one per cent."""


@dataclass(frozen=True, slots=True)
class Packing:
    """Bins, each with the sizes in it, largest first; and the least number of bins that has not been excluded."""

    bins: tuple[Sizes, ...]
    least: int
    """Equals the number of bins, unless the search was given up: then fewer may do, but not fewer than this."""


def least_bins(items: Sizes, capacity: int) -> int:
    """Return the least number of bins of `capacity` that hold `items`; an item above it has a bin of its own.

    items: sizes, largest first; zeros need no room.
    """
    return packed(items, capacity).least


@lru_cache(maxsize=65_536)
def packed(items: Sizes, capacity: int) -> Packing:
    """Pack `items` (largest first, zeros are left out) into the fewest bins; an item above `capacity` is alone.

    First fit decreasing where it reaches ⌈sum/capacity⌉; else bin completion (Korf 2002): bins are filled one after the
    other around the largest item left, and what bins may leave empty in all is known beforehand.
    """
    alone = tuple((item,) for item in items if item >= capacity)
    rest = tuple(item for item in items if 0 < item < capacity)
    greedy = _first_fit(rest, capacity)
    for bins in range(-(-sum(rest) // capacity), len(greedy)):
        search = _Completion(capacity)
        found = search.fill(Counter(rest), bins) if bins <= MOST_BINS else None
        if found is not None:
            return Packing(alone + found, len(alone) + bins)
        if bins > MOST_BINS or not search.steps:
            return Packing(alone + greedy, len(alone) + bins)
    return Packing(alone + greedy, len(alone) + len(greedy))


def _first_fit(items: Sizes, capacity: int) -> tuple[Sizes, ...]:
    bins: list[list[int]] = []
    room: list[int] = []
    for item in items:
        for number, free in enumerate(room):
            if free >= item:
                bins[number].append(item)
                room[number] -= item
                break
        else:
            bins.append([item])
            room.append(capacity - item)
    return tuple(map(tuple, bins))


class _Completion:
    """One search for a packing into a given number of bins. `steps`: how many more it may take."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.steps = SEARCH_STEPS
        self._hopeless: set[tuple[int, frozenset[tuple[int, int]]]] = set()

    def fill(self, left: Counter[int], bins: int) -> tuple[Sizes, ...] | None:
        """Return bins that hold all of `left`; None: there are none, or `steps` have run out."""
        if not left:
            return ()
        state = bins, frozenset(left.items())
        if not bins or state in self._hopeless:
            return None
        largest = max(left)
        waste = bins * self.capacity - sum(size * count for size, count in left.items())
        for others in self._fills(
            sorted(left, reverse=True), left - Counter([largest]), self.capacity - largest, waste
        ):
            content = (largest, *others)
            rest = self.fill(left - Counter(content), bins - 1)
            if rest is not None:
                return (content, *rest)
        self._hopeless.add(state)
        return None

    def _fills(self, sizes: list[int], left: Counter[int], room: int, waste: int) -> Iterator[Sizes]:
        """Yield the ways to fill `room` but for `waste` with what is `left` of `sizes` (largest first)."""
        if not sizes:
            if room <= waste:
                yield ()
            return
        if sum(size * left[size] for size in sizes) < room - waste:
            return
        size, smaller = sizes[0], sizes[1:]
        for count in range(min(left[size], room // size), -1, -1):
            if not self.steps:
                return
            self.steps -= 1
            for others in self._fills(smaller, left, room - count * size, waste):
                yield (size,) * count + others
