"""Order statistics and the power law that rebalance times rest on."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.estimation.rebalance_time import BELIEVED, fit, log_counts, next_at_or_below


@pytest.mark.parametrize(
    ("q", "samples", "rank"), [(0.5, 1, 1), (0.5, 9, 5), (0.99, 98, 99), (0.99, 99, 99), (0.99, 999, 990)]
)
def test_the_rank_leaves_q_of_the_places_below(q, samples, rank):
    assert next_at_or_below(q, samples) == rank


counts = st.integers(1, 500)
samples = st.lists(st.tuples(counts, counts, st.floats(0.001, 100)), min_size=4, max_size=50)


def rows(observed):
    return np.array([(*log_counts(members, moved), math.log(seconds)) for members, moved, seconds in observed])


def test_an_exact_law_is_found():
    truth = [(m, v, 0.01 * m**0.3 * v**0.8) for m in range(1, 25) for v in (1, 2, 5, 12, 50)]

    law = fit(rows(truth))

    assert law.exponents == pytest.approx((0.3, 0.8), abs=0.02)
    assert math.exp(law.log_s(10, 7)) == pytest.approx(0.01 * 10**0.3 * 7**0.8, rel=0.02)
    assert law.spread < 0.05


def test_what_looks_cheaper_with_more_is_taken_as_equal():
    """Pauses that shrink as more partitions move: the law holds c at 0 and fits b as if moved did not exist."""
    law = fit(rows([(m, v, 0.1 * m / v) for m in (1, 2, 4, 8) for v in (1, 3, 9)]))

    assert law.exponents[1] == 0.0
    assert law.exponents[0] == pytest.approx(1.0, abs=0.3)


@given(samples)
def test_no_exponent_is_ever_negative_and_no_other_pair_fits_better(observed):
    table = rows(observed)
    law = fit(table)
    apart = table - table.mean(axis=0)

    def loss(exponents):
        missed = apart[:, 2] - apart[:, :2] @ np.array(exponents)
        drawn = np.array(exponents) - np.array(BELIEVED)
        return float(missed @ missed + 4.0 * drawn @ drawn)

    best = loss(law.exponents)
    b, c = law.exponents
    assert b >= 0
    assert c >= 0
    for nudged in ((b + 0.01, c), (b, c + 0.01), (max(0, b - 0.01), c), (b, max(0, c - 0.01)), (b + 0.01, c + 0.01)):
        assert best <= loss(nudged) + 1e-6 * (1 + best)
