"""The packers of one dimension by name: the twelve of Landau et al. 2024, and Least-Loaded."""

import math
from typing import Final

import numpy as np

from autoscaler.packing.any_fit import BEST, FIRST, NEXT, WORST, AnyFit, ModifiedAnyFit, Ranks
from autoscaler.packing.least_loaded import NO_ROOM, ROUNDING, fill
from autoscaler.packing.one_dimension import NOBODY, Packer, Problem
from autoscaler.packing.owners import NONE, Overlap, best_matching

UNITS: Final = 1e12
"""Of the largest load: weights of the matching are integers."""


class LeastLoaded(Packer):
    """Packs rates as Least-Loaded does. Ties between equal loads: the order.

    A bin gets the number of a consumer before such that the rate that stays is the largest possible, or the lowest
    number that is free then. A load above the capacity counts as exactly one full bin: only loads of 0 can join it.
    """

    def pack(self, problem: Problem) -> Ranks:
        """Return the rank of each partition's consumer."""
        if not problem.loads.size:
            return problem.owners
        decreasing = problem.decreasing()
        rates = np.minimum(problem.loads[decreasing], problem.capacity)
        bins = max(1, math.ceil(rates.sum() / problem.capacity * (1 - ROUNDING)))
        while (places := fill(rates, np.zeros_like(rates), problem.capacity, math.inf, bins))[-1:] == NO_ROOM:
            bins += 1
        place_of = np.empty_like(places)
        place_of[decreasing] = places
        return _numbers(problem, place_of, bins)[place_of]


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
    "least_loaded": LeastLoaded(),
}
AS_THEY_COME: Final = ("nf", "ff", "bf", "wf")
"""Packers that take partitions in the order in which they are shown; the paper shows them in another each time."""
