"""Definitions of measuring.md, on numbers that can be checked by hand, and on the bounds that it prints."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.schedule import SECOND_US, Spacing, Split, build_schedule
from loadgen.workloads import WORKLOADS
from report.measures import (
    in_sla_share,
    nearest_rank,
    packing_replica_minutes,
    per_second_packing,
    percentile_us,
    replica_minutes,
)

latencies = st.lists(st.integers(0, 5_000_000), min_size=1, max_size=200)


def test_a_percentile_is_the_decimal_that_was_written() -> None:
    assert nearest_rank(1000, 0.999) == 999
    assert nearest_rank(100, 0.07) == 7, "0.07 · 100 is 7.000000000000001 in binary"
    assert nearest_rank(10_000, 0.9999) == 9_999


@given(latencies, st.sampled_from([0.5, 0.9, 0.99, 0.999, 1.0]))
def test_a_percentile_is_the_smallest_value_with_enough_at_or_below(values: list[int], q: float) -> None:
    found = percentile_us(np.array(values), q)
    assert found in values
    assert sum(value <= found for value in values) >= q * len(values) - 1e-9
    assert sum(value < found for value in values) < q * len(values)


@pytest.mark.parametrize(("total", "q"), [(0, 0.5), (5, 0.0), (5, 1.1)])
def test_no_percentile_of_nothing(total: int, q: float) -> None:
    with pytest.raises(ValueError, match="no percentile"):
        nearest_rank(total, q)


def test_on_the_target_is_within_it_and_lost_events_are_late() -> None:
    latency_us = np.array([100, 500_000, 500_001])
    assert in_sla_share(latency_us, 0.5) == pytest.approx(2 / 3)
    assert in_sla_share(latency_us, 0.5, lost=1) == 0.5
    assert in_sla_share(latency_us[:0], 0.5) == 1.0


def test_replica_minutes_are_the_area_under_what_was_requested() -> None:
    start_us, second = 10_000_000, 1_000_000
    changes = [(start_us - 5 * second, 1), (start_us + 60 * second, 3), (start_us + 90 * second, 2)]
    assert replica_minutes(changes, start_us, 120) == pytest.approx((60 * 1 + 30 * 3 + 30 * 2) / 60)
    assert replica_minutes([*changes, (start_us + 500 * second, 9)], start_us, 120) == pytest.approx(3.5)
    assert replica_minutes([], start_us, 120) == 0


def table_of(name: str, split: Split, partitions: int, spacing: Spacing = Spacing.BURST) -> np.ndarray:
    workload = WORKLOADS[name]
    schedule = build_schedule(workload.counts(), spacing=spacing, split=split, partitions=partitions, seed=1)
    table = np.zeros((workload.duration_s, partitions), dtype=np.int64)
    np.add.at(table, (schedule.offset_us // SECOND_US, schedule.partition), 1)
    return table


@pytest.mark.parametrize(
    ("name", "split", "partitions", "bursts", "printed"),
    [
        ("w1", Split.EVEN, 5, True, 28.62),
        ("w1-skew9", Split.TABLE, 9, True, 23.55),
        ("w1", Split.EVEN, 5, False, 14.1),
        ("taxi", Split.EVEN, 5, True, 336.8),
        ("taxi-skew9", Split.TABLE, 9, True, 294.1),
    ],
)
def test_the_packings_that_measuring_prints(
    name: str, split: Split, partitions: int, bursts: bool, printed: float
) -> None:
    table = table_of(name, split, partitions)
    minutes = packing_replica_minutes(table, service_rate=200, latency_target_s=0.5, bursts=bursts)
    assert minutes == pytest.approx(printed, abs=0.005 if printed < 100 else 0.051)


@pytest.mark.parametrize(("name", "printed"), [("w3", 20.92), ("w4", 26.02)])
def test_the_packings_of_the_older_paper(name: str, printed: float) -> None:
    minutes = packing_replica_minutes(WORKLOADS[name].counts(), service_rate=100, latency_target_s=5.0, bursts=True)
    assert minutes == pytest.approx(printed, abs=0.005)


def test_with_a_long_target_bursts_may_use_the_whole_second() -> None:
    table = np.full((60, 2), 100)
    short, long = (
        packing_replica_minutes(table, service_rate=200, latency_target_s=w, bursts=True) for w in (0.5, 5.0)
    )
    assert (short, long) == (2, 1)


def test_a_rate_that_serves_nothing_in_time_has_no_packing() -> None:
    with pytest.raises(ValueError, match="no room for one event"):
        packing_replica_minutes(np.ones((1, 1), dtype=np.int64), service_rate=1, latency_target_s=0.5, bursts=True)


def test_the_packing_of_each_second_stands_in_the_order_of_the_seconds() -> None:
    table = np.array([[60, 60], [0, 0], [40, 60], [60, 60], [150, 10]])
    found = per_second_packing(table, service_rate=200, latency_target_s=0.5, bursts=True)
    assert found.replicas.tolist() == [2, 1, 1, 2, 2]
