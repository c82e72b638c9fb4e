"""Fourteen packers behind one signature: the twelve to the letter, and what holds for all."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.packing_by_the_letter import by_the_letter

from autoscaler.packing.packers import PACKERS

TWELVE = [name for name in PACKERS if name not in ("keep_in_place", "least_loaded")]
CAPACITY = 100.0
sizes = st.integers(0, 120).map(float)


@st.composite
def situations(draw):
    """Loads, owners of some of them, and an order."""
    loads = dict(enumerate(draw(st.lists(sizes, min_size=1, max_size=14))))
    owners = {p: draw(st.integers(0, 6)) for p in loads if draw(st.booleans())}
    return loads, owners, draw(st.permutations(list(loads)))


@pytest.mark.parametrize("name", TWELVE)
@settings(max_examples=80, deadline=None)
@given(situation=situations())
def test_the_twelve_do_what_their_description_says(name, situation):
    loads, owners, order = situation
    assert PACKERS[name](loads, owners, CAPACITY, order=order) == by_the_letter(name, loads, owners, CAPACITY, order)


@pytest.mark.parametrize("name", TWELVE)
def test_they_do_so_over_a_whole_random_walk_with_ties(name):
    chance = np.random.default_rng(5)
    loads = chance.integers(0, 101, 40)
    owners = {}
    for _ in range(25):
        now = {p: float(load) for p, load in enumerate(loads)}
        order = chance.permutation(40).tolist()
        expected = by_the_letter(name, now, owners, CAPACITY, order)
        owners = PACKERS[name](now, owners, CAPACITY, order=order)
        assert owners == expected
        loads = np.clip(loads + chance.integers(-10, 11, 40), 0, 100)


@pytest.mark.parametrize("name", PACKERS)
@settings(max_examples=60, deadline=None)
@given(situation=situations())
def test_every_partition_is_placed_and_only_oversize_ones_overfill(name, situation):
    loads, owners, order = situation
    packer = PACKERS[name]
    placed = packer(loads, owners, CAPACITY, order=order)
    assert placed.keys() == loads.keys()
    assert min(placed.values()) >= 0
    for consumer in set(placed.values()):
        held = [loads[p] for p in placed if placed[p] == consumer]
        if name in ("nf", "nfd"):  # a candidate that holds only idle partitions takes any size, as published
            held = [load for load in held if load > 0]
        assert sum(held) <= CAPACITY or len([load for load in held if load > 0]) == 1
    assert packer(loads, owners, CAPACITY, order=order) == placed


@pytest.mark.parametrize("name", ["keep_in_place"])
def test_nothing_moves_when_nothing_is_at_risk_and_no_consumer_can_be_spared(name):
    loads = dict.fromkeys(range(6), 45.0)
    owners = {0: 0, 1: 0, 2: 3, 3: 3, 4: 7, 5: 7}
    assert PACKERS[name](loads, owners, CAPACITY) == owners


@pytest.mark.parametrize("name", PACKERS)
def test_owners_of_partitions_that_are_gone_do_not_matter(name):
    loads = {1: 30.0, 2: 60.0, 5: 80.0}
    with_ghosts = PACKERS[name](loads, {1: 0, 9: 4, 11: 2}, CAPACITY)
    assert with_ghosts == PACKERS[name](loads, {1: 0}, CAPACITY)


@pytest.mark.parametrize("name", PACKERS)
@pytest.mark.parametrize(
    ("loads", "capacity", "order", "said"),
    [
        ({0: -1.0}, 100.0, None, "partition 0"),
        ({0: float("nan")}, 100.0, None, "partition 0"),
        ({0: float("inf")}, 100.0, None, "partition 0"),
        ({0: 1.0}, 0.0, None, "capacity"),
        ({0: 1.0, 1: 2.0}, 100.0, [0], "order"),
        ({0: 1.0, 1: 2.0}, 100.0, [0, 0], "order"),
    ],
)
def test_arguments_that_make_no_sense_are_named(name, loads, capacity, order, said):
    with pytest.raises(ValueError, match=said):
        PACKERS[name](loads, {}, capacity, order=order)


@pytest.mark.parametrize("name", PACKERS)
def test_nothing_to_pack_is_no_packing(name):
    assert PACKERS[name]({}, {}, CAPACITY) == {}
