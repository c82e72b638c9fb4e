"""Who gets what under a plan that states a count only."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.simulator.members import assign
from autoscaler.simulator.settings import Assignor

NAMES = ("a", "b", "c", "d")


def test_sticky_moves_what_equal_counts_demand_and_nothing_else():
    owners = dict.fromkeys(range(5), "a")
    assert assign(Assignor.STICKY, 5, ("a", "b"), owners) == {0: "a", 1: "a", 2: "a", 3: "b", 4: "b"}


def test_range_gives_consecutive_partitions():
    owners = {0: "b", 1: "a", 2: "b", 3: "a", 4: "b"}
    assert "".join(assign(Assignor.RANGE, 5, ("a", "b", "c"), owners).values()) == "aabbc"


owners_of = st.lists(st.sampled_from(NAMES), min_size=1, max_size=9)
some_names = st.lists(st.sampled_from(NAMES), min_size=1, max_size=4, unique=True)


@pytest.mark.parametrize("assignor", Assignor)
@given(owners=owners_of, names=some_names)
def test_counts_differ_by_one_at_most(assignor, owners, names):
    result = assign(assignor, len(owners), names, dict(enumerate(owners)))
    assert list(result) == list(range(len(owners)))
    count = Counter(dict.fromkeys(names, 0)) + Counter(result.values())
    sizes = [count[name] for name in names]
    assert max(sizes) - min(sizes) <= 1


@given(owners=owners_of, names=some_names)
def test_sticky_moves_as_little_as_any_placement_with_such_counts(owners, names):
    result = assign(Assignor.STICKY, len(owners), names, dict(enumerate(owners)))
    stayed = sum(result[partition] == owner for partition, owner in enumerate(owners))
    held = Counter(owners)
    each, more = divmod(len(owners), len(names))
    at_least = sum(min(held[name], each) for name in names)
    one_more = sum(held[name] > each for name in names)
    assert stayed == at_least + min(more, one_more)
