"""Loads that wander (Landau et al. 2024, section VI), one packer over them, and what its course costs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from autoscaler.packing.one_dimension import Packer
from loadgen.shapes import LANDAU_MAX, wander

Owners = NDArray[np.int64]
"""Shape (iterations, partitions): number of the consumer that owns the partition."""
CAPACITY: Final = LANDAU_MAX
"""Of a consumer, in the unit of the loads. No load exceeds it."""


@dataclass(frozen=True, slots=True)
class Stream:
    """Loads of partitions over iterations, and the orders in which they are handed to a packer."""

    loads: NDArray[np.int64]
    """Shape (iterations, partitions), 0 … CAPACITY."""
    base_order: tuple[int, ...]
    """A permutation of the partitions that stays: it breaks ties between equal loads."""
    fresh_orders: NDArray[np.int64]
    """Shape (iterations, partitions): one for each iteration, for packers that take partitions as they come."""


def random_walk(
    *, partitions: int, iterations: int, delta: int, seed: Sequence[int], start: int | None = None
) -> Stream:
    """Return a stream whose loads change by a uniform integer in {-delta, …, delta} in each iteration.

    start: load of every partition at first; None draws each. Loads are clipped to 0 … CAPACITY: without the upper clip,
    which the paper's formula lacks, they would leave what a consumer can take.
    """
    chance = np.random.default_rng(seed)
    loads = wander(chance, partitions=partitions, seconds=iterations, delta=delta, start=start)
    base_order = tuple(chance.permutation(partitions).tolist())
    fresh_orders = chance.permuted(np.tile(np.arange(partitions), (iterations, 1)), axis=1)
    return Stream(loads, base_order, fresh_orders)


def pack_all(packer: Packer, stream: Stream, *, as_they_come: bool = False) -> Owners:
    """Return who owns what after each iteration; each packing starts from the owners that the one before left.

    as_they_come: the packer is shown the partitions in a fresh order each time, as the paper's online algorithms are.
    Raises ValueError where it leaves partitions out.
    """
    iterations, partitions = stream.loads.shape
    course = np.empty((iterations, partitions), np.int64)
    owners: Mapping[int, int] = {}
    for iteration, row in enumerate(stream.loads.tolist()):
        order = stream.fresh_orders[iteration].tolist() if as_they_come else stream.base_order
        owners = packer(dict(enumerate(row)), owners, CAPACITY, order=order)
        if len(owners) != partitions:
            raise ValueError(f"{len(owners)} of {partitions} partitions were placed")
        course[iteration] = [owners[partition] for partition in range(partitions)]
    return course


def consumers(course: Owners) -> NDArray[np.int64]:
    """Return how many consumers own something, for each iteration."""
    in_order = np.sort(course, axis=1)
    return np.asarray(1 + np.count_nonzero(np.diff(in_order, axis=1), axis=1), np.int64)


def moved(course: Owners) -> NDArray[np.bool_]:
    """Return which partitions change their owner, shape as `course`: none in the first iteration."""
    changed = np.zeros(course.shape, np.bool_)
    changed[1:] = course[1:] != course[:-1]
    return changed


def rscore(course: Owners, loads: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the load that changes its owner, in capacities of a consumer, for each iteration: 0 in the first.

    Loads are those of the new iteration (Landau et al. 2024, equation 9, as its code computes it).
    """
    return np.asarray((loads * moved(course)).sum(axis=1) / CAPACITY, np.float64)
