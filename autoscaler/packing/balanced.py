"""Least-Loaded under the shared signature: one dimension, and consumers numbered so that little moves."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from autoscaler.packing.balancing import NO_ROOM, fill
from autoscaler.packing.least_loaded import ROUNDING
from autoscaler.packing.matching import NONE, Overlap, best_matching
from autoscaler.packing.one_dimension import NOBODY, Problem
from autoscaler.packing.open_consumers import Ranks

UNITS = 1e12
"""Of the largest load: weights of the matching are integers."""


def balanced(
    loads: Mapping[int, float], owners: Mapping[int, int], capacity: float, *, order: Sequence[int] | None = None
) -> dict[int, int]:
    """Pack rates as Least-Loaded does; see Packer. Ties between equal loads: the order.

    A bin gets the number of a consumer before such that the rate that stays is the largest possible, or the lowest
    number that is free then. A load above the capacity counts as exactly one full bin: only loads of 0 can join it.
    """
    problem = Problem.of(loads, owners, capacity, order)
    if not loads:
        return {}
    decreasing = problem.decreasing()
    rates = np.minimum(problem.loads[decreasing], problem.capacity)
    bins = max(1, math.ceil(rates.sum() / problem.capacity * (1 - ROUNDING)))
    while (places := fill(rates, np.zeros_like(rates), problem.capacity, math.inf, bins))[-1:] == NO_ROOM:
        bins += 1
    place_of = np.empty_like(places)
    place_of[decreasing] = places
    return problem.answer(_numbers(problem, place_of, bins)[place_of])


def _numbers(problem: Problem, place_of: Ranks, bins: int) -> Ranks:
    """Return the consumer of each bin."""
    owned = problem.owners != NOBODY
    if not owned.any():
        return np.arange(bins)
    pairs, pair_of = np.unique(place_of[owned] * problem.consumers + problem.owners[owned], return_inverse=True)
    # one unit for the handover itself: moving an idle partition is not free either
    stays = np.rint(problem.loads[owned] * (UNITS / max(problem.loads.max(), problem.capacity))) + 1
    overlap = Overlap(
        np.searchsorted(pairs // problem.consumers, np.arange(bins + 1)),
        pairs % problem.consumers,
        np.bincount(pair_of, stays).astype(np.int64),
    )
    numbers = best_matching(overlap, problem.consumers)
    free = np.setdiff1d(np.arange(problem.consumers), numbers)
    numbers[numbers == NONE] = free[: np.count_nonzero(numbers == NONE)]
    return numbers
