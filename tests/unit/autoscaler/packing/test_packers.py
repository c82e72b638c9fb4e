"""Properties of every packer, including removed partitions and large consumer numbers."""

import pytest
from hypothesis import given, settings
from unit.autoscaler.packing.situations import CAPACITY, fits, loads_by_consumer, situations

from autoscaler.packing.packers import PACKERS

SOME = settings(max_examples=40)


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
def test_equal_inputs_have_equal_outputs_and_are_not_changed(situation):
    loads, owners, order = situation
    given_loads, given_owners = dict(loads), dict(owners)
    for packer in PACKERS.values():
        once = packer(loads, owners, CAPACITY, order=order)

        assert once == packer(dict(loads), dict(owners), CAPACITY, order=order)
        assert (loads, owners) == (given_loads, given_owners)


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
