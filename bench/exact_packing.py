"""Bin packing without approximation, for the few partitions of one second."""

from functools import lru_cache


@lru_cache(maxsize=65_536)
def least_bins(items: tuple[int, ...], capacity: int) -> int:
    """Return the least number of bins of `capacity` that hold `items`; an item above it has a bin of its own.

    items: sizes, largest first; zeros need no room. Exact: depth first over the placements that differ, ended early by
    ⌈sum/capacity⌉. Its time grows exponentially with the items in the worst case; meant for up to some tens.
    """
    alone = sum(item >= capacity for item in items)
    rest = [item for item in items if 0 < item < capacity]
    if not rest:
        return alone
    bins = -(-sum(rest) // capacity)
    while not _fits(rest, [capacity] * bins):
        bins += 1
    return alone + bins


def _fits(items: list[int], room: list[int]) -> bool:
    """Return whether `items`, largest first, fit into bins that have `room` left. Leaves `room` as it was."""
    if not items:
        return True
    if sum(items) > sum(room):
        return False
    item, others = items[0], items[1:]
    tried: set[int] = set()
    for number, free in enumerate(room):
        if free < item or free in tried:
            continue
        tried.add(free)  # bins with equal room are the same choice
        room[number] -= item
        fits = _fits(others, room)
        room[number] += item
        if fits:
            return True
        if free == item:
            return False  # nothing fills this bin better, so no other place for the item can succeed
    return False
