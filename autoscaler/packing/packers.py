"""Next, First, Best and Worst Fit with owners, in arrival order or decreasing (Landau et al. 2024, arXiv:2402.06085).

They differ from the textbook rules in one point. If a consumer must be opened for a partition, it is the partition's
owner, unless this owner is open already. The choice between open consumers ignores the owner. The loops are compiled.

Modified Any Fit: consumers keep large partitions and pass on small ones. None of its four variants checks whether a
move is needed, so small partitions move to earlier consumers even if nothing is gained.
"""

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from autoscaler.jit import compiled
from autoscaler.packing.one_dimension import NO_OWNER, Packer, Problem

Ranks = NDArray[np.int64]
Loads = NDArray[np.float64]

FIRST: Final = 0
BEST: Final = 1
WORST: Final = 2
NEXT: Final = 3
"""Fit rules, in order: the consumer with the lowest number, the fullest, the emptiest, and the last one opened."""
NONE: Final = -1
_COUNT, _LOWEST, _LATEST = 0, 1, 2


@dataclass(frozen=True, slots=True)
class AnyFit(Packer):
    """Builds a new assignment, partition by partition.

    Next Fit opens consumer 0 before the first partition. The other rules start with no open consumer.
    """

    rule: int
    """FIRST, BEST, WORST or NEXT."""
    decreasing: bool = False
    """Whether the largest load comes first; else partitions come in the order of arrival."""

    def pack(self, problem: Problem) -> Ranks:
        """Return the consumer of each partition, as a rank (see `Problem`)."""
        opened = new_packing(len(problem.numbers))
        if self.rule == NEXT:
            open_consumer(opened, 0)
        sequence = problem.decreasing() if self.decreasing else np.arange(problem.loads.size)
        into = np.empty_like(problem.owners)
        place_all(opened, self.rule, sequence, problem.loads, problem.owners, problem.capacity, into)
        return into


class Packing(NamedTuple):
    """State of a packing. Consumers are ranks (see `Problem`). An open one stays open."""

    order: Ranks
    """Open consumers, ascending, in the first tally[0] places."""
    load: Loads
    """Load assigned to each consumer so far."""
    is_open: NDArray[np.bool_]
    tally: Ranks
    """Number of open consumers; lower bound of the lowest one that is not open; the consumer opened last."""


@compiled
def new_packing(count: int) -> Packing:
    """Return an empty packing for `count` consumers: none is open, and none has load."""
    return Packing(np.empty(count, np.int64), np.zeros(count), np.zeros(count, np.bool_), np.array([0, 0, NONE]))


@compiled
def open_consumer(opened: Packing, consumer: int) -> None:
    """Mark a consumer as open."""
    at = opened.tally[_COUNT]
    while at > 0 and opened.order[at - 1] > consumer:
        opened.order[at] = opened.order[at - 1]
        at -= 1
    opened.order[at] = consumer
    opened.is_open[consumer] = True
    opened.tally[_COUNT] += 1
    opened.tally[_LATEST] = consumer


@compiled
def find_consumer(opened: Packing, rule: int, load: float, capacity: float) -> int:
    """Return the open consumer that the rule chooses for `load`, or NONE. Ties go to the lowest rank.

    A linear scan in machine code is faster than a tree, up to some thousands of consumers.
    """
    found = NONE
    if rule == NEXT:
        latest = opened.tally[_LATEST]
        # A consumer without load counts as empty, even if it has partitions: so does the published Next Fit.
        return int(latest) if opened.load[latest] == 0 or opened.load[latest] + load <= capacity else NONE
    for at in range(opened.tally[_COUNT]):
        consumer = opened.order[at]
        present = opened.load[consumer]
        if present + load > capacity:
            continue
        if rule == FIRST:
            return int(consumer)
        if (
            found == NONE
            or (rule == BEST and present > opened.load[found])
            or (rule == WORST and present < opened.load[found])
        ):
            found = consumer
    return found


@compiled
def consumer_to_open(opened: Packing, owner: int) -> int:
    """Return the consumer to open for a partition: its owner if not open yet, else the lowest one that is not open."""
    if owner >= 0 and not opened.is_open[owner]:
        return owner
    while opened.is_open[opened.tally[_LOWEST]]:
        opened.tally[_LOWEST] += 1
    return int(opened.tally[_LOWEST])


@compiled
def place_all(
    opened: Packing, rule: int, sequence: Ranks, loads: Loads, owners: Ranks, capacity: float, into: Ranks
) -> None:
    """Place the partitions of `sequence` one by one. Open a consumer if none fits. Write their consumers to `into`."""
    for partition in sequence:
        consumer = find_consumer(opened, rule, loads[partition], capacity)
        if consumer == NONE:
            consumer = consumer_to_open(opened, owners[partition])
            open_consumer(opened, consumer)
        opened.load[consumer] += loads[partition]
        into[partition] = consumer


@dataclass(frozen=True, slots=True)
class ModifiedAnyFit(Packer):
    """Packs in three steps: sort the previous consumers, rebuild each in this order, place the remaining partitions."""

    rule: int
    by_largest: bool = False
    """Whether consumers are ranked by their largest partition; else by the sum. Both use the new loads."""

    def pack(self, problem: Problem) -> Ranks:
        """Return the consumer of each partition, as a rank (see `Problem`)."""
        opened = new_packing(len(problem.numbers))
        into = np.empty_like(problem.owners)
        ranked = self._ranking(problem)
        left = _rebuild(opened, self.rule, ranked, *problem.grouped(), problem.loads, problem.capacity, into)
        rest = np.concatenate((np.flatnonzero(problem.owners == NO_OWNER), left))
        rest = rest[np.argsort(-problem.loads[rest], kind="stable")]
        place_all(opened, self.rule, rest, problem.loads, problem.owners, problem.capacity, into)
        return into

    def _ranking(self, problem: Problem) -> Ranks:
        owned = problem.owners != NO_OWNER
        owners, loads = problem.owners[owned], problem.loads[owned]
        key = np.zeros(len(problem.numbers))
        (np.maximum if self.by_largest else np.add).at(key, owners, loads)
        consumers = np.unique(owners)
        ranking: Ranks = consumers[np.argsort(-key[consumers], kind="stable")]
        return ranking


@compiled
def _rebuild(
    opened: Packing, rule: int, ranked: Ranks, grouped: Ranks, starts: Ranks, loads: Loads, capacity: float, into: Ranks
) -> Ranks:
    """Pass on small partitions of each consumer while they fit elsewhere. Keep large ones while they fit here.

    grouped: partitions by consumer, largest first. Those of consumer c are grouped[starts[c]:starts[c + 1]].
    Returns the partitions that fit neither way.
    """
    left_over, left = np.empty_like(grouped), 0
    for consumer in ranked:
        first, after_last = starts[consumer], starts[consumer + 1]
        while after_last > first:
            smallest = grouped[after_last - 1]
            to = find_consumer(opened, rule, loads[smallest], capacity)
            if to == NONE:
                break  # no larger one fits either
            opened.load[to] += loads[smallest]
            into[smallest] = to
            after_last -= 1
        if after_last == first:
            continue
        open_consumer(opened, consumer)
        for at in range(first, after_last):
            load = loads[grouped[at]]
            if at > first and opened.load[consumer] + load > capacity:
                # All smaller ones leave, too, even those that would fit.
                left_over[left : left + after_last - at] = grouped[at:after_last]
                left += after_last - at
                break
            opened.load[consumer] += load
            into[grouped[at]] = consumer
    return left_over[:left]


PACKERS: Final[dict[str, Packer]] = {
    "nf": AnyFit(NEXT),
    "ff": AnyFit(FIRST),
    "bf": AnyFit(BEST),
    "wf": AnyFit(WORST),
    "nfd": AnyFit(NEXT, decreasing=True),
    "ffd": AnyFit(FIRST, decreasing=True),
    "bfd": AnyFit(BEST, decreasing=True),
    "wfd": AnyFit(WORST, decreasing=True),
    "mwf": ModifiedAnyFit(WORST),
    "mbf": ModifiedAnyFit(BEST),
    "mwfp": ModifiedAnyFit(WORST, by_largest=True),
    "mbfp": ModifiedAnyFit(BEST, by_largest=True),
}
ARRIVAL_ORDER_PACKERS: Final = ("nf", "ff", "bf", "wf")
"""Packers that take partitions in the given order. The paper gives another order at each step."""
