"""Workloads have the exact counts that workloads.md states."""

import numpy as np
import pytest

from loadgen.workloads import DEMO_LIMIT, DEMO_PEAK, WORKLOADS, half_cosine


def test_w1_has_the_papers_counts() -> None:
    counts = WORKLOADS["w1"].counts()
    assert counts.shape == (600,)
    assert counts.sum() == 109_053
    assert counts.max() == 350
    assert np.flatnonzero(counts == 350).tolist() == list(range(471, 479))


def test_the_rates_of_w1_sum_to_108750() -> None:
    rate = half_cosine(((0, 0), (125, 200), (212.5, 150), (300, 275), (387.5, 150), (475, 350), (600, 0)))
    assert rate.sum() == pytest.approx(108_750.0)


def test_skew_9_puts_half_of_w1_into_two_partitions() -> None:
    counts = WORKLOADS["w1-skew9"].counts()
    assert counts.shape == (600, 9)
    assert counts.sum() == 111_449
    assert counts.max() == 88
    assert counts[:, :2].sum() / counts.sum() == pytest.approx(0.5, abs=0.02)


def test_the_demo_surges_and_stays_within_what_two_cores_carry() -> None:
    total = WORKLOADS["demo"].counts().sum(axis=1)
    assert len(total) == 120
    assert total.max() == DEMO_PEAK <= 120 < DEMO_LIMIT
    calm, surge, dip, spike, end = total[:16], total[36:54], total[62:74], total[78:90], total[96:]
    assert calm.max() < 50 * 0.4, "one replica of 50 events/s is enough, also by f_down"
    assert end.max() < 50 * 0.4
    assert surge.min() > 50 * 0.9 * 2, "more than two replicas can serve"
    assert spike.min() > surge.max() > 3 * dip.max()


@pytest.mark.parametrize("rate", [150, 350])
def test_a_steady_load_sends_the_same_in_every_second(rate: int) -> None:
    assert WORKLOADS[f"steady-{rate}"].counts().tolist() == [rate] * 60


def test_a_workload_is_cut_but_never_stretched() -> None:
    assert WORKLOADS["w1"].events(10).tolist() == WORKLOADS["w1"].counts()[:10].tolist()
    for wrong in (0, 601):
        with pytest.raises(ValueError, match=f"w1 lasts 600 s; {wrong} s"):
            WORKLOADS["w1"].events(wrong)


@pytest.mark.parametrize("name", WORKLOADS)
def test_every_workload_is_what_it_says(name: str) -> None:
    workload = WORKLOADS[name]
    shape = (workload.duration_s,) if workload.partitions is None else (workload.duration_s, workload.partitions)
    assert workload.name == name
    assert workload.counts().shape == shape
    assert workload.counts().min() >= 0
