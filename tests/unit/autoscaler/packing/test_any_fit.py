"""The twelve heuristics of Landau et al.: worked examples for each rule, and the rules read literally."""

from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.published_packing import by_the_letter
from unit.autoscaler.packing.situations import CAPACITY, situations

from autoscaler.packing.packers import PACKERS

TWELVE = ["nf", "ff", "bf", "wf", "nfd", "ffd", "bfd", "wfd", "mwf", "mbf", "mwfp", "mbfp"]


@settings(max_examples=100)
@given(situations())
def test_same_owners_as_by_the_letter_with_large_numbers_and_partitions_that_are_gone(situation):
    loads, owners, order = situation

    present = {partition: owner for partition, owner in owners.items() if partition in loads}

    for name in TWELVE:
        expected = by_the_letter(name, loads, present, CAPACITY, list(loads) if order is None else order)
        assert PACKERS[name](loads, owners, CAPACITY, order=order) == expected, name


@settings(max_examples=50)
@given(situations(st.integers(0, 100).map(float)))
def test_modified_any_fit_settles_under_constant_loads(situation):
    loads, first, _ = situation
    for name in ("mwf", "mbf", "mwfp", "mbfp"):
        owners = first
        for _ in range(30):
            before, owners = owners, PACKERS[name](loads, owners, CAPACITY)
        assert all(before[p] == owners[p] for p in loads if loads[p]), f"{name} still moves what has a load"
