"""Workloads have the exact counts of workloads.md, and our own shapes have their documented properties."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.workloads import DEMO_LIMIT, DEMO_PEAK, WORKLOADS, divide_totals, find_workload


def test_w1_has_the_papers_counts() -> None:
    counts = WORKLOADS["w1"].counts()
    assert counts.shape == (600,)
    assert counts.sum() == 109_053
    assert counts.max() == 350
    assert np.flatnonzero(counts == 350).tolist() == list(range(471, 479))


def test_skew_9_puts_half_of_w1_into_two_partitions() -> None:
    counts = WORKLOADS["w1-skew9"].counts()
    assert counts.shape == (600, 9)
    assert counts.sum() == 111_449
    assert counts.max() == 88
    assert counts[:, :2].sum() / counts.sum() == pytest.approx(0.5, abs=0.02)


def test_taxi_has_the_counts_of_the_fitted_curve() -> None:
    counts = WORKLOADS["taxi"].counts()
    assert (len(counts), counts.sum(), counts.max(), counts.min()) == (7207, 1_326_203, 361, 21)
    assert abs(int(counts.argmax()) - 6058) < 10
    skewed = WORKLOADS["taxi-skew9"].counts()
    assert (skewed[:, 0] == np.ceil(counts / 4)).all()
    assert (skewed[:, 8] == np.ceil(counts / 14)).all()


@given(st.lists(st.integers(0, 10_000), min_size=1, max_size=5), st.lists(st.integers(0, 50), min_size=1, max_size=6))
def test_divided_totals_are_complete_and_proportional(totals, weights) -> None:
    divided = divide_totals(np.array(totals), np.tile(weights, (len(totals), 1)))
    assert divided.sum(axis=1).tolist() == totals
    fair = np.array(weights) / sum(weights) if sum(weights) else np.full(len(weights), 1 / len(weights))
    assert (abs(divided - np.outer(totals, fair)) < 1).all()


def test_the_demo_surges_and_stays_within_the_capacity_of_two_cores() -> None:
    total = WORKLOADS["demo"].counts().sum(axis=1)
    assert len(total) == 120
    assert total.max() == DEMO_PEAK <= 120 < DEMO_LIMIT
    calm, surge, dip, spike, end = total[:16], total[36:54], total[62:71], total[79:90], total[96:]
    assert calm.max() < 50 * 0.4, "one replica of 50 events/s is enough, also by f_down"
    assert end.max() < 50 * 0.4
    assert surge.min() > 50 * 0.9 * 2, "more than two replicas can serve"
    assert spike.min() > surge.max() > 3 * dip.max()


def test_a_workload_can_be_shortened_but_not_extended() -> None:
    assert WORKLOADS["w1"].events(10).tolist() == WORKLOADS["w1"].counts()[:10].tolist()
    for duration_s in (0, 601):
        with pytest.raises(ValueError, match=f"w1 lasts 600 s; {duration_s} s"):
            WORKLOADS["w1"].events(duration_s)


def test_a_curve_says_what_comes_in_each_second_and_repeats() -> None:
    assert find_workload("80 for 2, to 100 in 4").events(8).tolist() == [80, 80, 83, 88, 93, 98, 80, 80]
    for wrong in ("80 for", "to 5 for 3", "80 for 2; 3 for 4", "x for 3"):
        with pytest.raises(KeyError, match=r"RATE for SECONDS|could not convert"):
            find_workload(wrong)
