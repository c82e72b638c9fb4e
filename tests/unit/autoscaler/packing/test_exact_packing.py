"""First-fit decreasing, and the integer program that packings are tested against."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.exact_packing import exact

from autoscaler.packing.bins import Capacity, Item
from autoscaler.packing.least_loaded import least_loaded
from autoscaler.policies.baselines import first_fit_decreasing

CAPACITY = Capacity(100.0, 50.0)


def of(*sizes):
    return [Item(number, float(rate), float(lag)) for number, (rate, lag) in enumerate(sizes)]


@pytest.mark.parametrize(
    ("items", "count"),
    [
        (of((60, 0), (40, 0), (50, 0), (50, 0)), 2),
        (of((45, 0), (45, 0), (35, 0), (35, 0), (20, 0), (20, 0)), 2),
        (of((10, 40), (10, 40), (10, 10)), 2),  # rates would fit one, lags do not
        (of((150, 0), (0, 0)), 1),  # a partition above the bin is alone but for idle ones
        (of((150, 0), (1, 0)), 2),
        (of((0, 0), (0, 0)), 1),
        ([], 0),
    ],
)
def test_the_fewest_bins(items, count):
    packing = exact(items, CAPACITY)
    assert (len(packing.bins), packing.least, packing.gap) == (count, count, 0.0)
    assert sorted(item.partition for one in packing.bins for item in one.items) == list(range(len(items)))


sizes = st.lists(st.tuples(st.integers(0, 120), st.integers(0, 60)), min_size=1, max_size=8)


@settings(max_examples=40, deadline=None)
@given(sizes)
def test_never_more_than_a_heuristic_and_never_less_than_the_sums_demand(pairs):
    items = of(*pairs)
    packing = exact(items, CAPACITY)
    assert len(packing.bins) <= len(least_loaded(items, CAPACITY))
    assert len(packing.bins) <= max(1, len(first_fit_decreasing(items, CAPACITY)))
    for one in packing.bins:
        busy = [item for item in one.items if not item.idle]
        if len(busy) > 1:
            assert not CAPACITY.exceeded_by(one.arrival_rate - 1e-6, one.lag - 1e-6)


@settings(max_examples=60, deadline=None)
@given(sizes)
def test_first_fit_places_every_item_once_and_overfills_no_bin(pairs):
    items = of(*pairs)
    bins = first_fit_decreasing(items, CAPACITY)
    assert sorted(item.partition for one in bins for item in one.items) == list(range(len(items)))
    for one in bins:
        if len([item for item in one.items if not item.idle]) > 1:
            assert not CAPACITY.exceeded_by(one.arrival_rate, one.lag)


def test_first_fit_takes_the_first_bin_with_room_in_both_dimensions():
    bins = first_fit_decreasing(of((60, 10), (50, 45), (40, 10), (30, 5)), CAPACITY)
    assert [one.partitions for one in bins] == [(0, 2), (1, 3)]
