"""Base of the one-dimensional packers: checks their arguments and turns them into arrays."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray

NO_OWNER = -1
"""Owner of a new partition."""


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """Arguments of a packer, as arrays with one entry for each partition, in the order of arrival.

    A consumer is given by its *rank*: its place in the order of consumer numbers. Ranks have no gaps, so arrays by rank
    have about twice as many entries as partitions at most. Up to the number of partitions, rank and number are equal.
    No packer opens a new consumer above that number.
    """

    partitions: Sequence[int]
    loads: NDArray[np.float64]
    owners: NDArray[np.int64]
    """Rank of each partition's previous consumer, or `NO_OWNER` for a new partition."""
    capacity: float
    numbers: NDArray[np.int64]
    """Consumer number by rank, ascending."""

    @classmethod
    def of(
        cls, loads: Mapping[int, float], owners: Mapping[int, int], capacity: float, order: Sequence[int] | None
    ) -> "Problem":
        """Check the arguments of a Packer. Raises ValueError naming the wrong one."""
        if not 0 < capacity < inf:
            raise ValueError(f"capacity must be positive and finite, got {capacity}")
        partitions = tuple(loads) if order is None else tuple(order)
        if order is not None and (len(partitions) != len(loads) or set(partitions) != loads.keys()):
            raise ValueError("order must name every partition of the loads exactly once")
        sizes = np.fromiter((loads[partition] for partition in partitions), np.float64, len(partitions))
        wrong = ~((sizes >= 0) & (sizes < inf))
        if wrong.any():
            at = int(wrong.argmax())
            raise ValueError(f"partition {partitions[at]}: load {sizes[at]} must be finite and not negative")
        if min(owners.values(), default=0) < 0:
            raise ValueError("owners must be 0 or above")
        before = np.fromiter((owners.get(partition, NO_OWNER) for partition in partitions), np.int64, len(partitions))
        owned = before != NO_OWNER
        numbers = np.union1d(np.arange(len(partitions) + 1), before[owned])
        ranks = np.where(owned, np.searchsorted(numbers, before), NO_OWNER)
        return cls(partitions, sizes, ranks, float(capacity), numbers)

    def decreasing(self) -> NDArray[np.int64]:
        """Return positions of the partitions, largest load first, equal loads in the order of arrival."""
        return np.argsort(-self.loads, kind="stable")

    def grouped(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return `grouped` and `starts`. grouped: positions of the partitions that have an owner, sorted by owner.

        The partitions of consumer c are grouped[starts[c]:starts[c + 1]], largest load first.
        """
        decreasing = self.decreasing()
        grouped = decreasing[np.argsort(self.owners[decreasing], kind="stable")]
        grouped = grouped[np.count_nonzero(self.owners == NO_OWNER) :]
        return grouped, np.searchsorted(self.owners[grouped], np.arange(len(self.numbers) + 1))

    def answer(self, chosen: NDArray[np.int64]) -> dict[int, int]:
        """Return partition → consumer number for the chosen ranks."""
        return dict(zip(self.partitions, self.numbers[chosen].tolist(), strict=True))


class Packer(ABC):
    """Places every partition on a consumer."""

    def __call__(
        self,
        loads: Mapping[int, float],
        owners: Mapping[int, int],
        capacity: float,
        *,
        order: Sequence[int] | None = None,
    ) -> dict[int, int]:
        """Return partition → number of its new consumer, for every partition of `loads`.

        loads: rate of each partition, in any unit, finite and not negative.
        owners: previous consumers, numbered from 0. A partition without one is new. One missing in `loads` is ignored.
        capacity: limit of a consumer, in the unit of the loads. A load above it gets a consumer of its own.
        order: every partition once, in the order of arrival. It breaks ties between equal loads. None: as in `loads`.
        Raises ValueError for other arguments.
        """
        problem = Problem.of(loads, owners, capacity, order)
        return problem.answer(self.pack(problem))

    @abstractmethod
    def pack(self, problem: Problem) -> NDArray[np.int64]:
        """Return the consumer of each partition, as a rank (see `Problem`)."""
