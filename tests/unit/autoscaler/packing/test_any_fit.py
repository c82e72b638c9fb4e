"""The twelve heuristics of Landau et al.: worked examples for each rule, and the rules read literally."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.packing_by_the_letter import by_the_letter
from unit.autoscaler.packing.situations import CAPACITY, situations

from autoscaler.packing.packers import PACKERS

TWELVE = ["nf", "ff", "bf", "wf", "nfd", "ffd", "bfd", "wfd", "mwf", "mbf", "mwfp", "mbfp"]


def pack(name, loads, owners=None, order=None):
    """Loads as a list: partition = position."""
    return list(PACKERS[name](dict(enumerate(loads)), owners or {}, CAPACITY, order=order).items())


def consumers(name, loads, owners=None, order=None):
    return [consumer for _, consumer in sorted(pack(name, loads, owners, order))]


@settings(max_examples=100)
@given(situations())
def test_same_owners_as_by_the_letter_with_large_numbers_and_partitions_that_are_gone(situation):
    loads, owners, order = situation

    present = {partition: owner for partition, owner in owners.items() if partition in loads}

    for name in TWELVE:
        expected = by_the_letter(name, loads, present, CAPACITY, list(loads) if order is None else order)
        assert PACKERS[name](loads, owners, CAPACITY, order=order) == expected, name


def test_first_best_and_worst_fit_differ_in_where_a_small_partition_goes():
    loads = [60, 70, 50, 20]

    assert consumers("ff", loads) == [0, 1, 2, 0]
    assert consumers("bf", loads) == [0, 1, 2, 1]
    assert consumers("wf", loads) == [0, 1, 2, 2]


def test_next_fit_looks_at_the_consumer_opened_last_alone():
    assert consumers("nf", [60, 70, 20, 30]) == [0, 1, 1, 2]
    assert consumers("nfd", [20, 60, 70, 30]) == [2, 1, 0, 1]


def test_next_fit_begins_with_consumer_0_whoever_owned_the_first_partition():
    owners = {0: 3, 1: 0, 2: 5}

    assert consumers("nf", [60, 70, 80], owners) == [0, 1, 5], "1 finds its consumer 0 taken"
    assert consumers("ff", [60, 70, 80], owners) == [3, 0, 5]


@pytest.mark.parametrize("name", ["mwf", "mbf", "mwfp", "mbfp"])
def test_without_owners_the_modified_ones_are_worst_and_best_fit_decreasing(name):
    loads = [60, 70, 50, 20, 10, 45]

    assert consumers(name, loads) == consumers("wfd" if name[1] == "w" else "bfd", loads)


def test_the_sum_ranks_consumers_or_their_largest_partition_does():
    """By sum consumer 1 (40 + 40) comes first and 0 (70) is left over; by the largest it is the other way round."""
    loads, owners = [70, 40, 40, 10], {0: 0, 1: 1, 2: 1, 3: 2}

    assert consumers("mwf", loads, owners)[3] == 0, "after 1 (80) and 0 (70), the emptier one takes the 10"
    assert consumers("mbf", loads, owners)[3] == 1
    assert consumers("mbfp", [70, 40, 25, 10], {0: 0, 1: 1, 2: 1, 3: 2}) == [0, 1, 0, 1]
    assert consumers("mbf", [65, 40, 30, 10], {0: 0, 1: 1, 2: 1, 3: 2}) == [0, 1, 1, 1]


@settings(max_examples=50)
@given(situations(st.integers(0, 100).map(float)))
def test_modified_any_fit_settles_under_constant_loads(situation):
    loads, first, _ = situation
    for name in ("mwf", "mbf", "mwfp", "mbfp"):
        owners = first
        for _ in range(30):
            before, owners = owners, PACKERS[name](loads, owners, CAPACITY)
        assert all(before[p] == owners[p] for p in loads if loads[p]), f"{name} still moves what has a load"
