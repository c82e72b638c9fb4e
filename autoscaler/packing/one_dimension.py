"""What the one-dimensional packers share: their arguments as arrays, checked."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray

NO_OWNER = -1
"""In place of an owner: the partition is new."""


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """What is to be packed, as arrays with one entry for each partition, in the order of arrival.

    Consumers are *ranks* here: the same order as their numbers, but without gaps, so that an array of all consumers
    that can be in use is no longer than twice the partitions. 0 … number of partitions are ranks and numbers at once:
    no packer opens a fresh consumer beyond.
    """

    partitions: Sequence[int]
    loads: NDArray[np.float64]
    owners: NDArray[np.int64]
    """Ranks of the consumers before; NOBODY for a new partition."""
    capacity: float
    numbers: NDArray[np.int64]
    """By rank, ascending."""

    @classmethod
    def of(
        cls, loads: Mapping[int, float], owners: Mapping[int, int], capacity: float, order: Sequence[int] | None
    ) -> "Problem":
        """Check the arguments of a Packer. Raises ValueError that names what is wrong with them."""
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
            raise ValueError("consumers are numbered from 0, an owner below that does not exist")
        before = np.fromiter((owners.get(partition, NO_OWNER) for partition in partitions), np.int64, len(partitions))
        owned = before != NO_OWNER
        numbers = np.union1d(np.arange(len(partitions) + 1), before[owned])
        ranks = np.where(owned, np.searchsorted(numbers, before), NO_OWNER)
        return cls(partitions, sizes, ranks, float(capacity), numbers)

    def decreasing(self) -> NDArray[np.int64]:
        """Return positions of the partitions, largest load first, equal ones in the order of arrival."""
        return np.argsort(-self.loads, kind="stable")

    def grouped(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return positions of owned partitions by owner, largest load first, and where each owner's begin.

        Those of consumer c are grouped[starts[c]:starts[c + 1]].
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
        """Return partition → number of the consumer that shall own it, for every partition of `loads`.

        loads: rate of each partition, in any unit, finite and not negative. owners: consumers before, numbered from
        0; a partition without one is new, one that `loads` lacks is ignored. capacity: what a consumer may hold, in
        the unit of the loads; a load above it gets a consumer of its own. order: every partition once: the order of
        arrival for packers that take partitions as they come, and what breaks ties between equal loads for the
        others; None: the order of `loads`.
        Raises ValueError for arguments that are not so.
        """
        problem = Problem.of(loads, owners, capacity, order)
        return problem.answer(self.pack(problem))

    @abstractmethod
    def pack(self, problem: Problem) -> NDArray[np.int64]:
        """Return the rank of each partition's consumer."""
