"""What must leave a consumer that has outgrown the capacity: the least rate. All of it compiled."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from autoscaler.jit import compiled
from autoscaler.packing.open_consumers import Loads, Ranks

NODES: Final = 1000
"""Choices looked at for one consumer; up to ten partitions that is all there are, beyond it a good one is found."""
ROUNDING: Final = 1e-9
"""A consumer that is full to the last digit is not overfull because its sum was taken in another order."""


@compiled
def least_eviction(loads: Loads, capacity: float) -> NDArray[np.bool_]:
    """Return which partitions of one consumer leave: the least sum such that the rest fits or is a single one.

    loads: largest first, two or more, above the capacity in total.
    """
    total = loads.sum()
    excess = total - capacity
    left = np.empty(loads.size + 1)
    left[loads.size] = 0.0
    for at in range(loads.size - 1, -1, -1):
        left[at] = left[at + 1] + loads[at]
    best = np.ones(loads.size, np.bool_)
    best[0] = False  # keeping only the largest is always allowed
    least = left[1]
    taken = np.zeros(loads.size, np.bool_)
    at, gone = 0, 0.0
    for _ in range(NODES):
        if gone >= excess and gone < least:
            best[:] = taken
            least = gone
        if at < loads.size and gone < excess and gone + left[at] >= excess:
            if gone + loads[at] < least:
                taken[at] = True
                gone += loads[at]
            at += 1
            continue
        at -= 1  # go back to the last one taken, and do without it
        while at >= 0 and not taken[at]:
            at -= 1
        if at < 0:
            break
        taken[at] = False
        gone = 0.0
        for before in range(at):
            if taken[before]:
                gone += loads[before]
        at += 1
    return best


@compiled
def evict(grouped: Ranks, starts: Ranks, loads: Loads, capacity: float, into: Ranks) -> int:
    """Mark with -1 in `into` whatever must leave an overfull consumer; return how many partitions that are.

    grouped: partitions by consumer, largest first; those of consumer c are grouped[starts[c]:starts[c + 1]].
    """
    evicted = 0
    for consumer in range(starts.size - 1):
        held = grouped[starts[consumer] : starts[consumer + 1]]
        if held.size < 2 or loads[held].sum() <= capacity * (1 + ROUNDING):
            continue
        leaves = least_eviction(loads[held], capacity)
        for at in range(held.size):
            if leaves[at]:
                into[held[at]] = -1
                evicted += 1
    return evicted
