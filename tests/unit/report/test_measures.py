"""The definitions of the measures, on numbers that can be checked manually, and on bounds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.simulation.sent_events import replica_minutes
from report.measures import in_sla_share, nearest_rank, per_second_packing, percentile_us

latencies = st.lists(st.integers(0, 5_000_000), min_size=1, max_size=200)


def test_a_percentile_is_read_as_a_decimal() -> None:
    assert nearest_rank(1000, 0.999) == 999
    assert nearest_rank(100, 0.07) == 7, "0.07 · 100 is 7.000000000000001 in binary"
    assert nearest_rank(10_000, 0.9999) == 9_999


@given(latencies, st.sampled_from([0.5, 0.9, 0.99, 0.999, 1.0]))
def test_a_percentile_is_the_smallest_value_with_enough_at_or_below(values: list[int], q: float) -> None:
    found = percentile_us(np.array(values), q)
    assert found in values
    assert sum(value <= found for value in values) >= q * len(values) - 1e-9
    assert sum(value < found for value in values) < q * len(values)


def test_a_latency_equal_to_the_target_is_in_time_and_lost_events_are_late() -> None:
    latency_us = np.array([100, 500_000, 500_001])
    assert in_sla_share(latency_us, 0.5) == pytest.approx(2 / 3)
    assert in_sla_share(latency_us, 0.5, lost=1) == 0.5
    assert in_sla_share(latency_us[:0], 0.5) == 1.0


def test_replica_minutes_are_the_integral_of_requested_replicas() -> None:
    start_us, second = 10_000_000, 1_000_000
    changes = [(start_us - 5 * second, 1), (start_us + 60 * second, 3), (start_us + 90 * second, 2)]
    assert replica_minutes(changes, start_us, 120) == pytest.approx((60 * 1 + 30 * 3 + 30 * 2) / 60)
    assert replica_minutes([*changes, (start_us + 500 * second, 9)], start_us, 120) == pytest.approx(3.5)
    assert replica_minutes([], start_us, 120) == 0


@given(st.lists(st.lists(st.integers(0, 12), min_size=1, max_size=6), min_size=1, max_size=20), st.integers(1, 8))
def test_no_packing_of_a_second_has_fewer_replicas(rows: list[list[int]], capacity: int) -> None:
    table = np.array([[*row, *[0] * (6 - len(row))] for row in rows])
    found = per_second_packing(table, service_rate=capacity, latency_target_s=1.0, bursts=False)
    for row, replicas in zip(table.tolist(), found.tolist(), strict=True):
        assert replicas <= least_bins([min(size, capacity) for size in row], capacity)


def least_bins(sizes: list[int], capacity: int, bins: tuple[int, ...] = ()) -> int:
    """Try every bin for every item."""
    if not sizes:
        return max(1, len(bins))
    size, *rest = sizes
    fits = [(*bins[:at], load + size, *bins[at + 1 :]) for at, load in enumerate(bins) if load + size <= capacity]
    return min(least_bins(rest, capacity, made) for made in {*fits, (*bins, size) if size else bins})
