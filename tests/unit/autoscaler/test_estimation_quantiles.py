"""Ranks that stand for quantiles, against the binomial distribution and against chance itself."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.estimation.order_statistics import CONFIDENCE, enclosing, next_at_or_below

quantiles = st.floats(0.001, 0.999)


def binomial_below(q, samples, rank):
    """P(fewer than `rank` of `samples` lie below the q-quantile)."""
    return sum(math.comb(samples, k) * q**k * (1 - q) ** (samples - k) for k in range(rank))


@pytest.mark.parametrize(
    ("q", "samples", "rank"), [(0.5, 1, 1), (0.5, 9, 5), (0.99, 98, 99), (0.99, 99, 99), (0.99, 999, 990)]
)
def test_the_rank_leaves_q_of_the_places_below(q, samples, rank):
    assert next_at_or_below(q, samples) == rank


@given(quantiles, st.integers(1, 2000))
def test_the_rank_is_the_first_that_suffices(q, samples):
    rank = next_at_or_below(q, samples)

    assert 1 <= rank <= samples + 1
    assert rank / (samples + 1) >= q - 1e-9
    assert rank == 1 or (rank - 1) / (samples + 1) < q


@given(quantiles, st.integers(1, 60))
def test_the_interval_leaves_its_doubt_on_each_side_and_not_much_less(q, samples):
    low, high = enclosing(q, samples)
    doubt = (1 - CONFIDENCE) / 2

    assert 0 <= low < high <= samples + 1
    assert binomial_below(q, samples, low) <= doubt + 1e-12
    assert binomial_below(q, samples, low + 1) > doubt - 1e-12
    if high <= samples:
        assert binomial_below(q, samples, high) >= 1 - doubt - 1e-12
    assert high == 1 or binomial_below(q, samples, high - 1) < 1 - doubt + 1e-12


@pytest.mark.parametrize(("samples", "bounded"), [(367, False), (368, True)])
def test_0_99_is_bounded_from_above_by_368_samples(samples, bounded):
    assert (enclosing(0.99, samples)[1] <= samples) is bounded


@pytest.mark.parametrize("draw", ["uniform", "heavy"])
def test_the_interval_holds_the_quantile_whatever_the_distribution_is(draw):
    """The 90 % quantile of 200 samples, 2000 times: its interval must hold it in 95 % of them, at least."""
    chance = random.Random(11)
    truth, one = (0.9, chance.random) if draw == "uniform" else (0.1**-2, lambda: (1 - chance.random()) ** -2)
    low, high = enclosing(0.9, 200)

    held = 0
    for _ in range(2000):
        seen = sorted(one() for _ in range(200))
        held += seen[low - 1] <= truth <= seen[high - 1]

    assert 0.945 <= held / 2000 <= 0.985
