"""Keep in place: who moves, who stays, and what a consumer is worth."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from unit.autoscaler.packing.situations import CAPACITY, fits, held_by, situations

from autoscaler.packing.keep_in_place import KeepInPlace, least_eviction
from autoscaler.packing.packers import PACKERS

keep_in_place = KeepInPlace()
FEWEST = KeepInPlace(consumer_price=1000.0, swing=0.0, caution=0.0, repacks=True)


def rate_moved(before, after, loads):
    return sum(load for partition, load in loads.items() if before.get(partition, after[partition]) != after[partition])


def can_be_emptied(held, consumer):
    """Whether the others can take every partition, best fit decreasing."""
    room = {other: CAPACITY - sum(loads) for other, loads in held.items() if other != consumer}
    for load in held[consumer]:
        fitting = [other for other in room if room[other] >= load]
        if not fitting:
            return False
        room[min(fitting, key=room.__getitem__)] -= load
    return True


@given(situations())
def test_stays_put_when_nobody_is_overfull_and_nobody_can_be_emptied(situation):
    loads, owners, order = situation
    owners = PACKERS["bfd"](loads, owners, CAPACITY)
    held = held_by(owners, loads)
    safe = not any(can_be_emptied(held, consumer) for consumer in held)
    idle_beside_too_much = any(sum(loads) > CAPACITY and len(loads) > 1 for loads in held.values())

    placed = keep_in_place(loads, owners, CAPACITY, order=order)

    assert placed == owners or not safe or idle_beside_too_much


def test_the_least_that_helps_leaves_an_overfull_consumer():
    """0 holds 60 + 30 + 25: 25 leaves and not 30, and finds room in 1."""
    loads, owners = {0: 60.0, 1: 30.0, 2: 25.0, 3: 70.0}, {0: 0, 1: 0, 2: 0, 3: 1}

    assert keep_in_place(loads, owners, CAPACITY) == {0: 0, 1: 0, 2: 1, 3: 1}


def test_a_consumer_is_emptied_if_that_moves_less_than_its_price():
    loads, owners = {0: 50.0, 1: 40.0, 2: 30.0}, {0: 0, 1: 1, 2: 2}

    emptied = KeepInPlace(consumer_price=0.35, swing=0.0)(loads, owners, CAPACITY)
    assert set(emptied.values()) == {0, 1}
    assert (emptied[0], emptied[1]) == (0, 1)
    assert KeepInPlace(consumer_price=0.25, swing=0.0)(loads, owners, CAPACITY) == owners


def test_a_partition_above_the_capacity_stays_and_the_others_leave():
    loads, owners = {0: 150.0, 1: 30.0, 2: 20.0}, {0: 2, 1: 2, 2: 2}

    placed = keep_in_place(loads, owners, CAPACITY)
    assert placed[0] == 2
    assert placed[1] == placed[2] != 2


def test_a_price_with_no_end_and_repacking_never_needs_more_than_best_fit_decreasing():
    chance = np.random.default_rng(1)
    walk = chance.integers(0, 101, 60)
    owners = {}
    for _ in range(30):
        loads = dict(enumerate(walk.astype(float).tolist()))
        fewest = len(set(PACKERS["bfd"](loads, owners, CAPACITY).values()))
        owners = FEWEST(loads, owners, CAPACITY)
        assert len(set(owners.values())) <= fewest
        walk = np.clip(walk + chance.integers(-10, 11, walk.size), 0, 100)


def test_moves_a_fraction_of_what_mwf_moves_on_a_random_walk():
    chance = np.random.default_rng(2)
    walk = chance.integers(0, 101, 60)
    moved, owners = {"mwf": 0.0, "keep_in_place": 0.0}, {"mwf": {}, "keep_in_place": {}}
    for _ in range(60):
        loads = dict(enumerate(walk.astype(float).tolist()))
        for name in moved:
            placed = PACKERS[name](loads, owners[name], CAPACITY)
            moved[name] += rate_moved(owners[name], placed, loads)
            owners[name] = placed
        walk = np.clip(walk + chance.integers(-5, 6, walk.size), 0, 100)

    assert moved["keep_in_place"] < 0.35 * moved["mwf"]


@pytest.mark.parametrize(
    "packer", [KeepInPlace(trials=0), KeepInPlace(consumer_price=3.0), KeepInPlace(swing=0.0), FEWEST]
)
@given(situation=situations())
def test_no_setting_overfills_a_consumer_or_forgets_a_partition(packer, situation):
    loads, owners, order = situation

    placed = packer(loads, owners, CAPACITY, order=order)

    assert placed.keys() == loads.keys()
    assert fits(held_by(placed, loads))


@pytest.mark.parametrize("setting", ["consumer_price", "swing", "caution", "trials"])
@pytest.mark.parametrize("value", [-1.0, float("nan"), float("inf")])
def test_a_setting_that_makes_no_sense_is_refused(setting, value):
    with pytest.raises(ValueError, match=f"{setting} must be finite and not negative"):
        KeepInPlace(**{setting: value})


@given(st.lists(st.integers(0, 120), min_size=2, max_size=9))
@example([60, 45])
@example([150, 30, 20])
@example([50, 50, 50, 50, 50, 50])
def test_no_smaller_eviction_leaves_a_consumer_that_fits(sizes):
    sizes = sorted(sizes, reverse=True)
    if sum(sizes) <= CAPACITY:
        sizes = [101, *sizes]

    leaves = least_eviction(np.array(sizes, float), CAPACITY)

    left = [size for size, leaving in zip(sizes, leaves, strict=True) if not leaving]
    assert len(left) == 1 or sum(left) <= CAPACITY
    subsets = (kept for count in range(1, len(sizes) + 1) for kept in combinations(sizes, count))
    assert sum(left) == max(sum(kept) for kept in subsets if len(kept) == 1 or sum(kept) <= CAPACITY)
