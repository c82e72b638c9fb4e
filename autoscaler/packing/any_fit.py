"""Next, First, Best and Worst Fit with owners, as they come or decreasing (Landau et al. 2024, arXiv:2402.06085).

Differs from textbooks where an owner counts: a consumer that has to be opened is the partition's owner, unless that is
open already. The owner takes no part in the choice between open consumers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from autoscaler.packing.one_dimension import Problem
from autoscaler.packing.open_consumers import NEXT, nothing_open, open_consumer, place_all


@dataclass(frozen=True, slots=True)
class AnyFit:
    """A Packer that builds the assignment anew, partition by partition.

    Next Fit opens consumer 0 before it looks at the first partition; the others begin with none.
    """

    rule: int
    """FIRST, BEST, WORST or NEXT of open_consumers."""
    decreasing: bool = False
    """Largest load first; else in the order of arrival."""

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
        if self.rule == NEXT:
            open_consumer(opened, 0)
        sequence = problem.decreasing() if self.decreasing else np.arange(problem.loads.size)
        into = np.empty_like(problem.owners)
        place_all(opened, self.rule, sequence, problem.loads, problem.owners, problem.capacity, into)
        return problem.answer(into)
