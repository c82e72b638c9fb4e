"""The law that carries what was learned at one pair of counts over to the others."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.estimation.power_law import BELIEVED, fit, log_counts

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


def test_without_variety_the_exponents_stay_as_believed():
    law = fit(rows([(3, 1, 0.010), (3, 1, 0.012), (3, 1, 0.011), (3, 1, 0.009)]))

    assert law.exponents == pytest.approx(BELIEVED)
    assert math.exp(law.log_s(3, 4) - law.log_s(3, 1)) == pytest.approx(2.0)


def test_exponents_are_less_sure_away_from_what_was_seen():
    law = fit(rows([(m, v, 0.01 * v**0.5 * (1 + 0.1 * (m % 2))) for m in (2, 3, 4) for v in (1, 2, 3)]))

    near, far, farther = (law.exponent_error(3, moved) for moved in (2, 20, 200))

    assert near < far < farther


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


@given(samples)
def test_residuals_are_sorted_and_centred(observed):
    residuals = fit(rows(observed)).residuals

    assert list(residuals) == sorted(residuals)
    assert float(residuals.mean()) == pytest.approx(0.0, abs=1e-9)
