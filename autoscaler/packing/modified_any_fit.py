"""Modified Any Fit (Landau et al. 2024, arXiv:2402.06085): consumers keep large partitions and hand on small ones.

None of the four asks whether a move is needed: small partitions always drift towards consumers that rank higher.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from autoscaler.jit import compiled
from autoscaler.packing.any_fit import NONE, Loads, Opened, Ranks, fitting, nothing_open, open_consumer, place_all
from autoscaler.packing.one_dimension import NOBODY, Problem


@dataclass(frozen=True, slots=True)
class ModifiedAnyFit:
    """A Packer in three stages: rank the consumers before, rebuild each in that order, place what is left over."""

    rule: int
    """BEST or WORST of any_fit."""
    by_largest: bool = False
    """Rank consumers by their largest partition; else by the sum of their partitions. Both with the new loads."""

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
        opened = nothing_open(problem.consumers)
        into = np.empty_like(problem.owners)
        left_over = np.empty_like(problem.owners)
        new = np.flatnonzero(problem.owners == NOBODY)
        left_over[: new.size] = new
        grouped, starts = problem.grouped()
        ranking = self._ranking(problem)
        left = _rebuild(
            opened, self.rule, ranking, grouped, starts, problem.loads, problem.capacity, into, left_over, new.size
        )
        rest = left_over[:left]
        rest = rest[np.argsort(-problem.loads[rest], kind="stable")]
        place_all(opened, self.rule, rest, problem.loads, problem.owners, problem.capacity, into)
        return problem.answer(into)

    def _ranking(self, problem: Problem) -> Ranks:
        """Return the consumers before, largest key first, equal ones by their number."""
        owned = problem.owners != NOBODY
        owners, loads = problem.owners[owned], problem.loads[owned]
        key = np.zeros(problem.consumers)
        (np.maximum if self.by_largest else np.add).at(key, owners, loads)
        consumers = np.unique(owners)
        ranking: Ranks = consumers[np.argsort(-key[consumers], kind="stable")]
        return ranking


@compiled
def _rebuild(
    opened: Opened,
    rule: int,
    ranking: Ranks,
    grouped: Ranks,
    starts: Ranks,
    loads: Loads,
    capacity: float,
    into: Ranks,
    left_over: Ranks,
    left: int,
) -> int:
    """Hand on small partitions of each consumer while they fit elsewhere, keep large ones while they fit here.

    grouped: partitions by consumer, largest first; those of consumer c are grouped[starts[c]:starts[c + 1]].
    left_over: its first `left` entries are new partitions; what fits neither way is appended. Returns how many then.
    """
    for consumer in ranking:
        first, after_last = starts[consumer], starts[consumer + 1]
        while after_last > first:
            smallest = grouped[after_last - 1]
            to = fitting(opened, rule, loads[smallest], capacity)
            if to == NONE:
                break  # nor does any larger one fit
            opened.held[to] += loads[smallest]
            into[smallest] = to
            after_last -= 1
        if after_last == first:
            continue
        open_consumer(opened, consumer)
        for at in range(first, after_last):
            load = loads[grouped[at]]
            if at > first and opened.held[consumer] + load > capacity:
                # All smaller ones leave too, even those that would fit.
                left_over[left : left + after_last - at] = grouped[at:after_last]
                left += after_last - at
                break
            opened.held[consumer] += load
            into[grouped[at]] = consumer
    return left
