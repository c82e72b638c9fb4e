"""Properties of every packer, including removed partitions and large consumer numbers."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from unit.autoscaler.packing.situations import CAPACITY, fits, loads_by_consumer, situations

from autoscaler.packing.packers import PACKERS

SOME = settings(max_examples=40)
LOADS = dict(enumerate([10, 30, 70, 80, 70, 20, 60]))
OWNERS = {0: 1, 1: 0, 2: 0, 3: 3, 4: 0, 5: 3, 6: 2}
PLACED = {
    "nf": (0, 0, 1, 3, 2, 2, 4),
    "ff": (1, 1, 0, 3, 2, 0, 1),
    "bf": (1, 1, 0, 3, 2, 3, 1),
    "wf": (1, 1, 0, 3, 2, 1, 4),
    "nfd": (4, 3, 1, 0, 2, 4, 3),
    "ffd": (1, 0, 0, 3, 1, 1, 2),
    "bfd": (1, 0, 0, 3, 1, 3, 2),
    "wfd": (1, 2, 0, 3, 1, 0, 2),
    "mwf": (2, 1, 0, 3, 1, 0, 2),
    "mbf": (0, 1, 0, 3, 1, 0, 2),
    "mwfp": (2, 0, 0, 3, 1, 3, 2),
    "mbfp": (0, 1, 0, 3, 1, 3, 2),
}


@pytest.mark.parametrize("name", PACKERS)
def test_each_packer_has_its_own_result_for_the_same_partitions(name):
    assert PACKERS[name](LOADS, OWNERS, CAPACITY) == dict(enumerate(PLACED[name]))


@SOME
@given(situations(st.integers(0, 100).map(float)))
def test_modified_any_fit_is_stable_under_constant_loads(situation):
    loads, first, _ = situation
    for name in ("mwf", "mbf", "mwfp", "mbfp"):
        owners = first
        for _ in range(30):
            before, owners = owners, PACKERS[name](loads, owners, CAPACITY)
        assert all(before[p] == owners[p] for p in loads if loads[p]), f"{name} still moves partitions with a load"


@SOME
@given(situations())
def test_every_partition_is_placed_and_no_consumer_exceeds_the_capacity(situation):
    loads, owners, order = situation
    for packer in PACKERS.values():
        placed = packer(loads, owners, CAPACITY, order=order)

        assert placed.keys() == loads.keys()
        assert all(isinstance(consumer, int) and consumer >= 0 for consumer in placed.values())
        assert fits(loads_by_consumer(placed, loads))


@SOME
@given(situations())
def test_owners_of_removed_partitions_are_ignored(situation):
    loads, owners, order = situation
    present = {partition: owner for partition, owner in owners.items() if partition in loads}
    for packer in PACKERS.values():
        assert packer(loads, owners, CAPACITY, order=order) == packer(loads, present, CAPACITY, order=order)


@pytest.mark.parametrize("name", PACKERS)
@pytest.mark.parametrize(
    ("loads", "capacity", "order", "argument"),
    [
        ({0: -1.0}, 100.0, None, "partition 0"),
        ({0: float("nan")}, 100.0, None, "partition 0"),
        ({0: float("inf")}, 100.0, None, "partition 0"),
        ({0: 1.0}, 0.0, None, "capacity"),
        ({0: 1.0, 1: 2.0}, 100.0, [0], "order"),
        ({0: 1.0, 1: 2.0}, 100.0, [0, 0], "order"),
    ],
)
def test_wrong_arguments_are_named(name, loads, capacity, order, argument):
    with pytest.raises(ValueError, match=argument):
        PACKERS[name](loads, {}, capacity, order=order)
