"""Bins get the names of replicas so that the smallest arrival rate moves."""

from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from autoscaler.packing.bins import Bin, Item
from autoscaler.packing.owners import name_bins


def bins_of(*groups):
    """Return one bin for each {partition: λ}."""
    return [Bin(tuple(Item(partition, rate, 0) for partition, rate in group.items())) for group in groups]


def kept_rate(bins, owners, names):
    return sum(
        item.arrival_rate
        for bin_, name in zip(bins, names, strict=True)
        for item in bin_.items
        if owners.get(item.partition) == name
    )


def test_the_name_of_a_removed_replica_is_not_used_again():
    assert name_bins(bins_of({0: 5}), {0: "payment-0"}, [], "payment") == ("payment-1",)


@st.composite
def situations(draw):
    """Draw partitions with rates in up to 5 bins, owned by up to 5 replicas, some of which are gone."""
    rates = draw(st.lists(st.integers(0, 100), min_size=1, max_size=10))
    bins = draw(st.integers(1, 5))
    into = [draw(st.integers(0, bins - 1)) for _ in rates]
    owners = {p: f"r{draw(st.integers(0, 4))}" for p in range(len(rates)) if draw(st.booleans())}
    names = draw(st.lists(st.sampled_from([f"r{i}" for i in range(5)]), unique=True))
    return (
        bins_of(*[{p: rates[p] for p in range(len(rates)) if into[p] == bin_} for bin_ in range(bins)]),
        owners,
        names,
    )


@given(situations())
def test_no_other_naming_keeps_more_arrival_rate(situation):
    bins, owners, names = situation
    chosen = name_bins(bins, owners, names, "payment")

    pool = [*names, *(f"new-{i}" for i in range(len(bins)))]
    best = (
        max(kept_rate(bins, owners, naming) for naming in set(permutations(pool, len(bins)))) if len(bins) < 4 else None
    )

    assert len(set(chosen)) == len(bins)
    assert best is None or kept_rate(bins, owners, chosen) == best
    assert chosen == name_bins(bins, owners, names, "payment")
