"""Least-Loaded under the shared signature: the same bins, and numbers that keep what can be kept."""

from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st
from unit.autoscaler.packing.situations import CAPACITY, situations

from autoscaler.packing.bins import Capacity, Item
from autoscaler.packing.least_loaded import least_loaded
from autoscaler.packing.packers import PACKERS

balanced = PACKERS["least_loaded"]


def groups(placed):
    by_consumer = {}
    for partition, consumer in placed.items():
        by_consumer.setdefault(consumer, set()).add(partition)
    return sorted(map(sorted, by_consumer.values()))


@given(situations())
def test_the_same_bins_as_in_two_dimensions_without_lag(situation):
    loads, owners, _ = situation
    items = [Item(partition, load, 0.0) for partition, load in loads.items()]
    bins = least_loaded(items, Capacity(CAPACITY, 1.0))

    placed = balanced(loads, owners, CAPACITY, order=sorted(loads))

    assert groups(placed) == sorted(sorted(one.partitions) for one in bins if one.items)


@given(situations(st.integers(0, 100).map(float)))
def test_no_other_numbers_keep_more(situation):
    loads, owners, _ = situation
    placed = balanced(loads, owners, CAPACITY)
    bins = groups(placed)
    numbers = sorted({owners[p] for p in loads if p in owners} | set(range(len(bins))))
    if len(bins) > 4:
        return

    def kept(naming):
        return sum(loads[p] for one, number in zip(bins, naming, strict=True) for p in one if owners.get(p) == number)

    chosen = [placed[one[0]] for one in bins]
    assert kept(chosen) == max(map(kept, permutations(numbers, len(bins))), default=0)
