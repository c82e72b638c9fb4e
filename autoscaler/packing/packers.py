"""Modified Any Fit: consumers keep large partitions and pass on small ones (Landau et al. 2024, arXiv:2402.06085).

None of its four variants checks whether a move is needed, so small partitions move to earlier consumers even if nothing
is gained. If a consumer must be opened for a partition, it is the partition's owner, unless this owner is open already.
The choice between open consumers ignores the owner.
"""

from bisect import insort
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import count
from math import inf
from typing import Any, Final


class Packing:
    """Open consumers with their loads, and the consumers of the placed partitions. An open consumer stays open."""

    def __init__(
        self, choose: Callable[..., Any], loads: Mapping[int, float], owners: Mapping[int, int], capacity: float
    ) -> None:
        self._choose, self.loads, self.owners, self._capacity = choose, loads, owners, capacity
        self._open: list[int] = []
        """Open consumers, ascending."""
        self._load: dict[int, float] = {}
        self._unused = count()
        self.consumer_of: dict[int, int] = {}

    def decreasing(self, partitions: Iterable[int]) -> list[int]:
        """Return the partitions, largest load first. Equal loads keep their order."""
        return sorted(partitions, key=lambda partition: -self.loads[partition])

    def open(self, consumer: int) -> None:
        """Open a consumer."""
        insort(self._open, consumer)
        self._load[consumer] = 0.0

    def fits(self, partition: int, consumer: int) -> bool:
        """Return whether an open consumer has room for a partition."""
        return self._load[consumer] + self.loads[partition] <= self._capacity

    def find(self, partition: int) -> int | None:
        """Return the open consumer that is chosen; None: the partition fits nowhere. Ties: the lowest number."""
        load_of, load, most = self._load, self.loads[partition], self._capacity
        fitting = (consumer for consumer in self._open if load_of[consumer] + load <= most)
        return self._choose(fitting, key=load_of.__getitem__, default=None)  # type: ignore[no-any-return]

    def put(self, partition: int, consumer: int) -> None:
        """Place a partition on an open consumer."""
        self._load[consumer] += self.loads[partition]
        self.consumer_of[partition] = consumer

    def place(self, partitions: Iterable[int]) -> None:
        """Place partitions one by one. If none fits, open the partition's owner, or the lowest consumer not open."""
        for partition in partitions:
            consumer = self.find(partition)
            if consumer is None:
                consumer = self.owners.get(partition, -1)
                if consumer < 0 or consumer in self._load:
                    consumer = next(number for number in self._unused if number not in self._load)
                self.open(consumer)
            self.put(partition, consumer)


@dataclass(frozen=True, slots=True)
class ModifiedAnyFit:
    """Packs in three steps: rank the previous consumers, rebuild each in this order, place the remaining partitions."""

    choose: Callable[..., Any]
    """Chooses by load among the open consumers into which a partition fits: `max` the fullest, `min` the emptiest."""
    by_largest: bool = False
    """Whether consumers are ranked by their largest partition; else by the sum. Both use the new loads."""

    def __call__(self, loads: Mapping[int, float], owners: Mapping[int, int], capacity: float) -> dict[int, int]:
        """Return partition → number of its new consumer, for every partition of `loads`.

        loads: rate of each partition, in any unit, finite and not negative. Equal loads keep their order.
        owners: previous consumers, numbered from 0. A partition without one is new. One missing in `loads` is ignored.
        capacity: limit of a consumer, in the unit of the loads. A load above it gets a consumer of its own.
        Raises ValueError for other arguments.
        """
        if not 0 < capacity < inf:
            raise ValueError(f"capacity must be positive and finite, got {capacity}")
        for partition, load in loads.items():
            if not 0 <= load < inf:
                raise ValueError(f"partition {partition}: load {load} must be finite and not negative")
        if min(owners.values(), default=0) < 0:
            raise ValueError("owners must be 0 or above")
        packing = Packing(self.choose, loads, owners, capacity)
        self._pack(packing)
        return {partition: packing.consumer_of[partition] for partition in loads}

    def _pack(self, packing: Packing) -> None:
        """Pass on small partitions of each consumer while they fit elsewhere. Keep large ones while they fit here."""
        owned: dict[int, list[int]] = {}
        rank: dict[int, float] = {}
        for partition in filter(packing.owners.__contains__, packing.loads):
            owner, load = packing.owners[partition], packing.loads[partition]
            owned.setdefault(owner, []).append(partition)
            before = rank.get(owner, 0.0)
            rank[owner] = max(before, load) if self.by_largest else before + load
        rest = [partition for partition in packing.loads if partition not in packing.owners]
        for consumer in sorted(owned, key=lambda consumer: (-rank[consumer], consumer)):
            own = packing.decreasing(owned[consumer])
            while own and (to := packing.find(own[-1])) is not None:  # else no larger one fits either
                packing.put(own.pop(), to)
            if not own:
                continue
            packing.open(consumer)
            packing.put(own.pop(0), consumer)
            while own and packing.fits(own[0], consumer):
                packing.put(own.pop(0), consumer)
            rest += own  # all smaller ones leave, too, even those that would fit
        packing.place(packing.decreasing(rest))


PACKERS: Final = {
    "mwf": ModifiedAnyFit(min),
    "mbf": ModifiedAnyFit(max),
    "mwfp": ModifiedAnyFit(min, by_largest=True),
    "mbfp": ModifiedAnyFit(max, by_largest=True),
}
"""Modified Worst Fit and Best Fit, ranked by the sum or by the largest partition."""
