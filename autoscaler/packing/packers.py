"""Next, First, Best and Worst Fit with owners, in arrival order or decreasing (Landau et al. 2024, arXiv:2402.06085).

They differ from the textbook rules in one point. If a consumer must be opened for a partition, it is the partition's
owner, unless this owner is open already. The choice between open consumers ignores the owner.

Modified Any Fit: consumers keep large partitions and pass on small ones. None of its four variants checks whether a
move is needed, so small partitions move to earlier consumers even if nothing is gained.
"""

from bisect import insort
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from itertools import count
from math import inf
from typing import Final


class Rule(Enum):
    """How an open consumer is chosen for a partition that fits into several: the first, fullest, emptiest or newest."""

    FIRST = auto()
    BEST = auto()
    WORST = auto()
    NEXT = auto()


class Packing:
    """Open consumers with their loads, and the consumers of the placed partitions. An open consumer stays open."""

    def __init__(self, rule: Rule, loads: Mapping[int, float], owners: Mapping[int, int], capacity: float) -> None:
        self._rule, self.loads, self.owners, self._capacity = rule, loads, owners, capacity
        self._open: list[int] = []
        """Open consumers, ascending."""
        self._load: dict[int, float] = {}
        self._unused = count()
        self._newest = -1
        self.consumer_of: dict[int, int] = {}

    def decreasing(self, partitions: Iterable[int]) -> list[int]:
        """Return the partitions, largest load first. Equal loads keep their order."""
        return sorted(partitions, key=lambda partition: -self.loads[partition])

    def open(self, consumer: int) -> None:
        """Open a consumer."""
        insort(self._open, consumer)
        self._load[consumer], self._newest = 0.0, consumer

    def fits(self, partition: int, consumer: int) -> bool:
        """Return whether an open consumer has room for a partition."""
        return self._load[consumer] + self.loads[partition] <= self._capacity

    def find(self, partition: int) -> int | None:
        """Return the open consumer that the rule chooses; None: the partition fits nowhere. Ties: the lowest number."""
        if self._rule is Rule.NEXT:
            # A consumer without load counts as empty, even if it has partitions: so does the published Next Fit.
            takes = not self._load[self._newest] or self.fits(partition, self._newest)
            return self._newest if takes else None
        load_of, load, most = self._load, self.loads[partition], self._capacity
        fitting = (consumer for consumer in self._open if load_of[consumer] + load <= most)
        if self._rule is Rule.FIRST:
            return next(fitting, None)
        return (max if self._rule is Rule.BEST else min)(fitting, key=load_of.__getitem__, default=None)

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
class Packer:
    """Places every partition on a consumer: any fit, partition by partition.

    Next Fit opens consumer 0 before the first partition. The other rules start with no open consumer.
    """

    rule: Rule
    decreasing: bool = False
    """Whether the largest load comes first; else partitions come in the order of arrival."""

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
        if not 0 < capacity < inf:
            raise ValueError(f"capacity must be positive and finite, got {capacity}")
        arriving = tuple(loads if order is None else order)
        if len(arriving) != len(loads) or set(arriving) != loads.keys():
            raise ValueError("order must name every partition of the loads exactly once")
        for partition, load in loads.items():
            if not 0 <= load < inf:
                raise ValueError(f"partition {partition}: load {load} must be finite and not negative")
        if min(owners.values(), default=0) < 0:
            raise ValueError("owners must be 0 or above")
        packing = Packing(self.rule, loads, owners, capacity)
        self._pack(packing, arriving)
        return {partition: packing.consumer_of[partition] for partition in arriving}

    def _pack(self, packing: Packing, arriving: Sequence[int]) -> None:
        if self.rule is Rule.NEXT:
            packing.open(0)
        packing.place(packing.decreasing(arriving) if self.decreasing else arriving)


@dataclass(frozen=True, slots=True)
class ModifiedAnyFit(Packer):
    """Packs in three steps: rank the previous consumers, rebuild each in this order, place the remaining partitions."""

    by_largest: bool = False
    """Whether consumers are ranked by their largest partition; else by the sum. Both use the new loads."""

    def _pack(self, packing: Packing, arriving: Sequence[int]) -> None:
        """Pass on small partitions of each consumer while they fit elsewhere. Keep large ones while they fit here."""
        owned: dict[int, list[int]] = {}
        rank: dict[int, float] = {}
        for partition in filter(packing.owners.__contains__, arriving):
            owner, load = packing.owners[partition], packing.loads[partition]
            owned.setdefault(owner, []).append(partition)
            before = rank.get(owner, 0.0)
            rank[owner] = max(before, load) if self.by_largest else before + load
        rest = [partition for partition in arriving if partition not in packing.owners]
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


PACKERS: Final[dict[str, Packer]] = {
    "nf": Packer(Rule.NEXT),
    "ff": Packer(Rule.FIRST),
    "bf": Packer(Rule.BEST),
    "wf": Packer(Rule.WORST),
    "nfd": Packer(Rule.NEXT, decreasing=True),
    "ffd": Packer(Rule.FIRST, decreasing=True),
    "bfd": Packer(Rule.BEST, decreasing=True),
    "wfd": Packer(Rule.WORST, decreasing=True),
    "mwf": ModifiedAnyFit(Rule.WORST),
    "mbf": ModifiedAnyFit(Rule.BEST),
    "mwfp": ModifiedAnyFit(Rule.WORST, by_largest=True),
    "mbfp": ModifiedAnyFit(Rule.BEST, by_largest=True),
}
ARRIVAL_ORDER_PACKERS: Final = ("nf", "ff", "bf", "wf")
"""Packers that take partitions in the given order. The paper gives another order at each step."""
