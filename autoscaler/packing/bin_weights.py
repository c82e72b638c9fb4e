"""Bounds from below on the number of bins: by weights of which a bin holds no more than a limit.

Whatever sizes fit into a bin, their weights do not exceed the limit (dual feasible functions: Fekete, Schepers 2001).
So no fewer bins will do than the sum of the weights over the limit; with the size itself as weight, ⌈sum/capacity⌉.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from autoscaler.jit import compiled

Ints = NDArray[np.int64]
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
