"""Tests of Least-Loaded against the literal wording of the paper."""

from hypothesis import example, given
from hypothesis import strategies as st

from autoscaler.packing.bins import Bin, Capacity, Item
from autoscaler.packing.least_loaded import least_loaded

REPLICA = Capacity.of_replica(200.0, 0.5, 0.9)

loads = st.floats(0, 500, allow_nan=False) | st.integers(0, 40).map(float) | st.sampled_from([0.0, 1e-300, 90.0, 180.0])
items = st.lists(st.tuples(loads, loads), max_size=14).map(
    lambda pairs: [Item(partition, rate, lag) for partition, (rate, lag) in enumerate(pairs)]
)
capacities = st.builds(Capacity, st.floats(1e-3, 300), st.floats(1e-3, 300)) | st.just(REPLICA)


def literal(items, capacity):
    """Follow the paper: start with one bin, try all items in order, start again with one more bin."""
    full = (capacity.arrival_rate, capacity.lag)
    sized = [
        (full if capacity.exceeded_by(one.arrival_rate, one.lag) else (one.arrival_rate, one.lag), one) for one in items
    ]
    sized.sort(key=lambda pair: (-pair[0][0], -pair[0][1], pair[1].partition))
    count = 1
    while True:
        bins = [[0.0, 0.0, []] for _ in range(count)]
        for (rate, lag), item in sized:
            room = [one for one in bins if rate <= capacity.arrival_rate - one[0] and lag <= capacity.lag - one[1]]
            if not room:
                break
            chosen = min(room, key=lambda one: (one[0], one[1], len(one[2])))
            chosen[0] += rate
            chosen[1] += lag
            chosen[2].append(item)
        else:
            return tuple(Bin(tuple(one[2])) for one in bins)
        count += 1


@given(items, capacities)
@example([Item(0, 180.00000000000003, 0), Item(1, 1e-300, 0)], REPLICA)
def test_the_bins_equal_those_of_the_papers_wording(items, capacity):
    assert least_loaded(items, capacity) == literal(items, capacity)


@given(items, capacities, st.integers(1, 6))
def test_every_partition_is_placed_once_and_no_bin_exceeds_its_capacity(items, capacity, at_least):
    bins = least_loaded(items, capacity, at_least=at_least)

    placed = sorted(partition for one in bins for partition in (item.partition for item in one.items))
    assert placed == list(range(len(items)))
    assert at_least <= len(bins) <= max(at_least, len(items), 1)
    for one in bins:
        rounded = Capacity(capacity.arrival_rate * (1 + 1e-9), capacity.lag * (1 + 1e-9))
        if rounded.exceeded_by(one.arrival_rate, one.lag):
            assert len([item for item in one.items if not item.idle]) == 1
