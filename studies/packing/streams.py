"""Loads that wander: the streams of Landau et al. 2024, section VI."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

CAPACITY: Final = 100
"""Of a consumer, in the unit of the loads. No load exceeds it."""

Start = int | None
"""Load of every partition in the first iteration; None draws each at random."""


@dataclass(frozen=True, slots=True)
class Stream:
    """Loads of partitions over iterations, and the orders in which they are handed to a packer."""

    loads: NDArray[np.int64]
    """Shape (iterations, partitions), 0 … CAPACITY."""
    base_order: tuple[int, ...]
    """A permutation of the partitions that stays: it breaks ties between equal loads."""
    fresh_orders: NDArray[np.int64]
    """Shape (iterations, partitions): a permutation for each iteration, for packers that take partitions as they come.
    """


def random_walk(*, partitions: int, iterations: int, delta: int, seed: Sequence[int], start: Start = None) -> Stream:
    """Return a stream whose loads change by a uniform integer in {-delta, …, delta} in each iteration.

    Loads are clipped to 0 … CAPACITY. Without the upper clip, which the paper's formula lacks, they would leave what
    a consumer can take.
    """
    chance = np.random.default_rng(seed)
    loads = np.empty((iterations, partitions), np.int64)
    loads[0] = chance.integers(0, CAPACITY, partitions, endpoint=True) if start is None else start
    steps = chance.integers(-delta, delta, (iterations - 1, partitions), endpoint=True)
    for iteration, step in enumerate(steps, start=1):
        loads[iteration] = np.clip(loads[iteration - 1] + step, 0, CAPACITY)
    base_order = tuple(chance.permutation(partitions).tolist())
    fresh_orders = chance.permuted(np.tile(np.arange(partitions), (iterations, 1)), axis=1)
    return Stream(loads, base_order, fresh_orders)
