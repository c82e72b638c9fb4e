"""Tests of the twelve heuristics of Landau et al. against a plain implementation."""

from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.published_packing import published_packing
from unit.autoscaler.packing.situations import CAPACITY, situations

from autoscaler.packing.packers import PACKERS

TWELVE = ["nf", "ff", "bf", "wf", "nfd", "ffd", "bfd", "wfd", "mwf", "mbf", "mwfp", "mbfp"]


@settings(max_examples=100)
@given(situations())
def test_the_owners_equal_those_of_the_plain_implementation(situation):
    loads, owners, order = situation

    present = {partition: owner for partition, owner in owners.items() if partition in loads}

    for name in TWELVE:
        expected = published_packing(name, loads, present, CAPACITY, list(loads) if order is None else order)
        assert PACKERS[name](loads, owners, CAPACITY, order=order) == expected, name


@settings(max_examples=50)
@given(situations(st.integers(0, 100).map(float)))
def test_modified_any_fit_is_stable_under_constant_loads(situation):
    loads, first, _ = situation
    for name in ("mwf", "mbf", "mwfp", "mbfp"):
        owners = first
        for _ in range(30):
            before, owners = owners, PACKERS[name](loads, owners, CAPACITY)
        assert all(before[p] == owners[p] for p in loads if loads[p]), f"{name} still moves partitions with a load"
