"""Properties of every packer, including removed partitions and large consumer numbers."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autoscaler.policies.landau import PACKERS

CAPACITY = 100.0
loads = st.integers(0, 12).map(lambda tenths: 10.0 * tenths) | st.integers(0, 130).map(float) | st.floats(0, 120)
SOME = settings(max_examples=40)
LOADS = dict(enumerate([10, 30, 70, 80, 70, 20, 60]))
OWNERS = {0: 1, 1: 0, 2: 0, 3: 3, 4: 0, 5: 3, 6: 2}
PLACED = {
    "mwf": (2, 1, 0, 3, 1, 0, 2),
    "mbf": (0, 1, 0, 3, 1, 0, 2),
    "mwfp": (2, 0, 0, 3, 1, 3, 2),
    "mbfp": (0, 1, 0, 3, 1, 3, 2),
}


@st.composite
def situations(draw, sizes=loads):
    """Draw loads and owners (new and removed partitions, large consumer numbers)."""
    rates = draw(st.lists(sizes, max_size=14))
    partitions = draw(st.permutations(range(len(rates))))
    known = draw(st.lists(st.integers(0, 6) | st.sampled_from([40, 10**9]), min_size=1, max_size=4))
    owners = {p: draw(st.sampled_from(known)) for p in range(len(rates) + 2) if draw(st.booleans())}
    return {partition: rates[partition] for partition in partitions}, owners


def loads_by_consumer(owners, loads):
    """Return the loads of the partitions of each consumer, largest first."""
    owned = {}
    for partition, consumer in owners.items():
        owned.setdefault(consumer, []).append(loads[partition])
    return {consumer: sorted(values, reverse=True) for consumer, values in owned.items()}


def fits(owned, capacity=CAPACITY):
    """Return whether no consumer exceeds the capacity, except by a single partition, with or without idle ones."""
    return all(
        sum(values) <= capacity * (1 + 1e-9) or len([load for load in values if load > 0]) == 1
        for values in owned.values()
    )


@pytest.mark.parametrize("name", PACKERS)
def test_each_packer_has_its_own_result_for_the_same_partitions(name):
    assert PACKERS[name](LOADS, OWNERS, CAPACITY) == dict(enumerate(PLACED[name]))


@SOME
@given(situations(st.integers(0, 100).map(float)))
def test_modified_any_fit_is_stable_under_constant_loads(situation):
    loads, first = situation
    for name in PACKERS:
        owners = first
        for _ in range(30):
            before, owners = owners, PACKERS[name](loads, owners, CAPACITY)
        assert all(before[p] == owners[p] for p in loads if loads[p]), f"{name} still moves partitions with a load"


@SOME
@given(situations())
def test_every_partition_is_placed_and_no_consumer_exceeds_the_capacity(situation):
    loads, owners = situation
    for packer in PACKERS.values():
        placed = packer(loads, owners, CAPACITY)

        assert placed.keys() == loads.keys()
        assert all(isinstance(consumer, int) and consumer >= 0 for consumer in placed.values())
        assert fits(loads_by_consumer(placed, loads))


@SOME
@given(situations())
def test_owners_of_removed_partitions_are_ignored(situation):
    loads, owners = situation
    present = {partition: owner for partition, owner in owners.items() if partition in loads}
    for packer in PACKERS.values():
        assert packer(loads, owners, CAPACITY) == packer(loads, present, CAPACITY)
