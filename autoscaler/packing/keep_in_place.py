"""Keep in place: partitions stay with their owners unless something is at risk or a consumer can be saved cheaply."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Final

import numpy as np
from numpy.typing import NDArray

from autoscaler.jit import compiled
from autoscaler.packing.any_fit import BEST, Loads, Ranks, nothing_open, opened_by, place_all
from autoscaler.packing.assignment import OWNED, Assignment, Prices, assigned, total_cost
from autoscaler.packing.one_dimension import NOBODY, Problem
from autoscaler.packing.rebuilding import empty_one, rebuild

SPARE: Final = 3
"""Consumers beyond those that own something, among which a search may choose."""
NODES: Final = 1000
"""Evictions looked at for one consumer; up to ten partitions that is all there are, beyond it a good one is found."""
ROUNDING: Final = 1e-9
"""A consumer that is full to the last digit is not overfull because its sum was taken in another order."""


@dataclass(frozen=True, slots=True)
class KeepInPlace:
    """A Packer that evicts the least rate from overfull consumers, empties one that is cheap to empty, else rests.

    Whenever something has to move it looks for the cheapest way: the rate that moves, plus a price for each consumer,
    plus what little room is likely to bring, all in capacities of a consumer. Raises ValueError for a setting that is
    negative or not finite.
    """

    consumer_price: float = 0.75
    """The rate that may move so that one consumer is saved, in capacities. More: fewer consumers, more moves."""
    swing: float = 0.05
    """By how much a partition's load changes from call to call (standard deviation), in capacities. 0: not known."""
    caution: float = 0.7
    """Weight of the rate that is likely to have to move in the next call."""
    trials: int = 100
    """Attempts at a cheaper assignment. More find better ones and take longer."""
    repacks: bool = False
    """May give up everything for the assignment of Best Fit Decreasing where that is cheaper, at risk or not."""

    def __post_init__(self) -> None:
        for name in ("consumer_price", "swing", "caution", "trials"):
            if not 0 <= getattr(self, name) < inf:
                raise ValueError(f"{name} must be finite and not negative, got {getattr(self, name)}")

    def __call__(
        self,
        loads: Mapping[int, float],
        owners: Mapping[int, int],
        capacity: float,
        *,
        order: Sequence[int] | None = None,
    ) -> dict[int, int]:
        """See Packer."""
        problem = Problem.of(loads, owners, capacity, order)
        if (problem.owners == NOBODY).all():
            return problem.answer(_repacked(problem))
        return problem.answer(self._kept(problem))

    def _kept(self, problem: Problem) -> Ranks:
        into = problem.owners.copy()
        grouped, starts = problem.grouped()
        evict(grouped, starts, problem.loads, problem.capacity, into)
        decreasing = problem.decreasing()
        pending = decreasing[into[decreasing] == NOBODY]
        opened = opened_by(into, problem.loads, problem.consumers)
        place_all(opened, BEST, pending, problem.loads, problem.owners, problem.capacity, into)
        prices = self._prices(problem.capacity)
        made = assigned(into, problem.loads, problem.consumers, prices)
        cheaper = self._cheaper(problem, made, prices) if self.repacks else None
        made = cheaper or made
        slots = np.sort(
            np.concatenate((np.flatnonzero(made.sums[:, OWNED] > 0), np.flatnonzero(made.sums[:, OWNED] == 0)[:SPARE]))
        )
        if not (pending.size or cheaper or empty_one(made, problem.owners, problem.loads, slots, prices)):
            return problem.owners
        chance = np.random.default_rng(0)
        return rebuild(made, problem.owners, problem.loads, slots, prices, self.trials, chance)

    def _prices(self, capacity: float) -> Prices:
        return Prices(capacity, self.consumer_price * capacity, self.swing * capacity, self.caution)

    def _cheaper(self, problem: Problem, made: Assignment, prices: Prices) -> Assignment | None:
        """Return the assignment of Best Fit Decreasing if it costs less than `made`."""
        other = assigned(_repacked(problem), problem.loads, problem.consumers, prices)
        now, then = (total_cost(one, problem.owners, problem.loads, prices) for one in (made, other))
        return other if then < now else None


def _repacked(problem: Problem) -> Ranks:
    """Return the owners under Best Fit Decreasing."""
    into = np.empty_like(problem.owners)
    opened = nothing_open(problem.consumers)
    place_all(opened, BEST, problem.decreasing(), problem.loads, problem.owners, problem.capacity, into)
    return into


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
