"""Tests of first-fit decreasing in two dimensions."""

from hypothesis import given, settings
from hypothesis import strategies as st

from autoscaler.packing.bins import Capacity, Item
from autoscaler.policies.baselines import first_fit_decreasing

CAPACITY = Capacity(100.0, 50.0)


def of(*sizes):
    return [Item(number, float(rate), float(lag)) for number, (rate, lag) in enumerate(sizes)]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 120), st.integers(0, 60)), min_size=1, max_size=8))
def test_first_fit_places_every_item_once_and_overfills_no_bin(pairs):
    items = of(*pairs)
    bins = first_fit_decreasing(items, CAPACITY)
    assert sorted(item.partition for bin_ in bins for item in bin_.items) == list(range(len(items)))
    for bin_ in bins:
        if len([item for item in bin_.items if not item.idle]) > 1:
            assert not CAPACITY.exceeded_by(bin_.arrival_rate, bin_.lag)
