"""One packer over one stream: each packing starts from the owners that the one before left."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from studies.packing.contestants import Contestant
from studies.packing.streams import CAPACITY, Stream

Owners = NDArray[np.int64]
"""Shape (iterations, partitions): number of the consumer that owns the partition."""


def pack_all(contestant: Contestant, stream: Stream) -> Owners:
    """Return who owns what after each iteration. Raises ValueError where a packer leaves partitions out."""
    iterations, partitions = stream.loads.shape
    course = np.empty((iterations, partitions), np.int64)
    owners: Mapping[int, int] = {}
    for iteration, row in enumerate(stream.loads.tolist()):
        order = stream.fresh_orders[iteration].tolist() if contestant.takes_as_they_come else stream.base_order
        owners = contestant.packer(dict(enumerate(row)), owners, CAPACITY, order=order)
        if len(owners) != partitions:
            raise ValueError(f"{contestant.name} placed {len(owners)} of {partitions} partitions")
        course[iteration] = [owners[partition] for partition in range(partitions)]
    return course


def consumers(course: Owners) -> NDArray[np.int64]:
    """Return how many consumers own something, for each iteration."""
    in_order = np.sort(course, axis=1)
    count: NDArray[np.int64] = 1 + np.count_nonzero(np.diff(in_order, axis=1), axis=1)
    return count


def moved(course: Owners) -> NDArray[np.int64]:
    """Return how many partitions change their owner, for each iteration: 0 in the first."""
    count: NDArray[np.int64] = np.count_nonzero(_changed(course), axis=1)
    return count


def rscore(course: Owners, loads: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the load that changes its owner, in capacities of a consumer, for each iteration: 0 in the first.

    Loads are those of the new iteration (Landau et al. 2024, equation 9, as its code computes it).
    """
    return np.asarray((loads * _changed(course)).sum(axis=1) / CAPACITY, np.float64)


def cbs(count: NDArray[np.int64], least: NDArray[np.int64]) -> float:
    """Return the mean share of consumers above the least of an iteration (cardinal bin score)."""
    return float(((count - least) / least).mean())


def forced_rscore(course: Owners, loads: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the least Rscore that overflow alone forces upon any packer that starts from the same owners.

    A consumer whose partitions have outgrown the capacity must give away at least so much that the rest fits: its
    load minus the largest subset of it that fits. Where no consumer overflows, nothing is forced.
    """
    forced = np.zeros(len(course), np.float64)
    for iteration in range(1, len(course)):
        before, now = course[iteration - 1], loads[iteration]
        totals = np.bincount(before, weights=now)
        evicted = sum(least_eviction(now[before == owner].tolist()) for owner in np.flatnonzero(totals > CAPACITY))
        forced[iteration] = evicted / CAPACITY
    return forced


def least_eviction(sizes: list[int]) -> int:
    """Return the least load that must leave so that the rest fits into one consumer (exact: sums as a set of bits)."""
    reachable = 1
    for size in sizes:
        reachable |= reachable << size
    fitting = reachable & ((1 << (CAPACITY + 1)) - 1)
    return sum(sizes) - (fitting.bit_length() - 1)


def _changed(course: Owners) -> NDArray[np.bool_]:
    changed = np.zeros(course.shape, np.bool_)
    changed[1:] = course[1:] != course[:-1]
    return changed
