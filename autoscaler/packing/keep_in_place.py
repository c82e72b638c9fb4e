"""Keep in place: partitions stay with their owners unless something is at risk or a consumer can be saved cheaply.

Where something moves, a search looks for a cheaper assignment (`ruin_and_recreate`). The loops are compiled.
"""

from dataclasses import dataclass
from math import inf
from typing import Final

import numpy as np
from numpy.typing import NDArray

from autoscaler.jit import compiled
from autoscaler.packing.any_fit import BEST, Loads, Ranks, nothing_open, opened_by, place_all
from autoscaler.packing.one_dimension import NOBODY, Packer, Problem
from autoscaler.packing.ruin_and_recreate import OWNED, Prices, assigned, empty_one, rebuild, total_cost

SPARE: Final = 3
"""Consumers beyond those that own something, among which a search may choose."""
NODES: Final = 1000
"""Evictions looked at for one consumer; up to ten partitions that is all there are, beyond it a good one is found."""
ROUNDING: Final = 1e-9
"""A consumer that is full to the last digit is not overfull because its sum was taken in another order."""


@dataclass(frozen=True, slots=True)
class KeepInPlace(Packer):
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

    def pack(self, problem: Problem) -> Ranks:
        """Return the rank of each partition's consumer."""
        if (problem.owners == NOBODY).all():
            return _repacked(problem)
        before, sizes, capacity = problem.owners, problem.loads, problem.capacity
        into = before.copy()
        grouped, starts = problem.grouped()
        evict(grouped, starts, sizes, capacity, into)
        decreasing = problem.decreasing()
        pending = decreasing[into[decreasing] == NOBODY]
        opened = opened_by(into, sizes, problem.consumers)
        place_all(opened, BEST, pending, sizes, before, capacity, into)
        prices = Prices(capacity, self.consumer_price * capacity, self.swing * capacity, self.caution)
        made = assigned(into, sizes, problem.consumers, prices)
        cheaper = False
        if self.repacks:
            other = assigned(_repacked(problem), sizes, problem.consumers, prices)
            cheaper = total_cost(other, before, sizes, prices) < total_cost(made, before, sizes, prices)
            made = other if cheaper else made
        holds = made.sums[:, OWNED] > 0
        slots = np.sort(np.concatenate((np.flatnonzero(holds), np.flatnonzero(~holds)[:SPARE])))
        if not (pending.size or cheaper or empty_one(made, before, sizes, slots, prices)):
            return before
        return rebuild(made, before, sizes, slots, prices, self.trials, np.random.default_rng(0))


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
def evict(grouped: Ranks, starts: Ranks, loads: Loads, capacity: float, into: Ranks) -> None:
    """Mark with -1 in `into` whatever must leave an overfull consumer.

    grouped: partitions by consumer, largest first; those of consumer c are grouped[starts[c]:starts[c + 1]].
    """
    for consumer in range(starts.size - 1):
        held = grouped[starts[consumer] : starts[consumer + 1]]
        if held.size > 1 and loads[held].sum() > capacity * (1 + ROUNDING):
            into[held[least_eviction(loads[held], capacity)]] = -1
