"""Keep in place: partitions stay with their owners unless something is at risk or a consumer can be saved cheaply."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from types import MappingProxyType
from typing import Final

import numpy as np

from autoscaler.packing.assignment import Prices, assigned
from autoscaler.packing.eviction import evict
from autoscaler.packing.one_dimension import NOBODY, Problem
from autoscaler.packing.open_consumers import BEST, WORST, Ranks, nothing_open, open_consumer, place_all
from autoscaler.packing.rebuilding import empty_one, rebuild


@dataclass(frozen=True, slots=True)
class KeepInPlace:
    """A Packer that evicts the least rate from overfull consumers, empties one that is cheap to empty, else rests.

    Whenever something has to move it looks for the cheapest way: the rate that moves, plus a price for each consumer,
    plus what little room is likely to bring, all in capacities of a consumer.
    """

    consumer_price: float = 0.6
    """The rate that may move so that one consumer is saved, in capacities. More: fewer consumers, more moves."""
    swing: float = 0.05
    """By how much a partition's load changes from call to call (standard deviation), in capacities. 0: not known."""
    caution: float = 0.5
    """Weight of the rate that is likely to have to move in the next call."""
    trials: int = 150
    """Attempts at a cheaper assignment. More find better ones and take longer."""
    repacks: bool = False
    """May give up everything for the assignment of Best Fit Decreasing where that is cheaper, at risk or not."""

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
        prices = Prices(
            problem.capacity, self.consumer_price * problem.capacity, self.swing * problem.capacity, self.caution
        )
        kept = problem.owners.copy()
        grouped, starts = problem.grouped()
        evict(grouped, starts, problem.loads, problem.capacity, kept)
        pending = np.flatnonzero(kept == NOBODY)
        opened = nothing_open(problem.consumers)
        ...
        return problem.answer(kept)
