"""Tests of the assignor of plans with only a count."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from autoscaler.simulator.members import assign

NAMES = ("a", "b", "c", "d")
owners_of = st.lists(st.sampled_from(NAMES), min_size=1, max_size=9)
some_names = st.lists(st.sampled_from(NAMES), min_size=1, max_size=4, unique=True)


@given(owners=owners_of, names=some_names)
def test_counts_differ_by_at_most_one(owners, names):
    result = assign(len(owners), names, dict(enumerate(owners)))
    assert list(result) == list(range(len(owners)))
    count = Counter(dict.fromkeys(names, 0)) + Counter(result.values())
    sizes = [count[name] for name in names]
    assert max(sizes) - min(sizes) <= 1


@given(owners=owners_of, names=some_names)
def test_the_assignor_moves_as_few_partitions_as_possible(owners, names):
    result = assign(len(owners), names, dict(enumerate(owners)))
    stayed = sum(result[partition] == owner for partition, owner in enumerate(owners))
    owned = Counter(owners)
    each, more = divmod(len(owners), len(names))
    at_least = sum(min(owned[name], each) for name in names)
    one_more = sum(owned[name] > each for name in names)
    assert stayed == at_least + min(more, one_more)
