"""Tests of the controller of Landau et al. 2024 and its packers. A replica serves 200 events/s and is filled to 150."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from unit.autoscaler.builders import seen

from autoscaler.model import Action
from autoscaler.policies.landau import PACKERS, Landau, LandauSettings
from autoscaler.policies.settings import PolicySettings

CAPACITY = 100.0
loads = st.integers(0, 12).map(lambda tenths: 10.0 * tenths) | st.integers(0, 130).map(float) | st.floats(0, 120)
SOME = settings(max_examples=40)
LOADS = dict(enumerate([10, 30, 70, 80, 70, 20, 60]))
OWNERS = {0: 1, 1: 0, 2: 0, 3: 3, 4: 0, 5: 3, 6: 2}
PLACED = {
    "mwf": (2, 1, 0, 3, 1, 0, 2),
    "mbf": (0, 1, 0, 3, 1, 0, 2),
    "mwfp": (2, 0, 0, 3, 1, 3, 2),
    "mbfp": (0, 1, 0, 3, 1, 3, 2),
}


def landau(**options):
    return Landau(PolicySettings(), LandauSettings(**options))


def owned(decision):
    """Return the partitions of each replica."""
    partitions = {}
    for partition, name in sorted(decision.plan.assignment.items()):
        partitions.setdefault(name, []).append(partition)
    return partitions


def test_it_packs_unowned_partitions_at_once_and_all_at_each_interval():
    policy = landau(packer="MBF")

    first = policy.decide(seen([100, 60, 40], replicas=1, owned=[], at_s=0))
    assert (first.action, owned(first)) == (Action.UP, {"payment-0": [0, 2], "payment-1": [1]})
    assert "3 of 3 partitions have no owner (0, 1, 2), packed by MBF" in first.reason

    for at_s in (1, 15, 29.9):
        later = policy.decide(seen([100, 60, 40], replicas=2, owned=[0, 1, 0], at_s=at_s))
        assert later.action is Action.NO_CHANGE
    assert "the next packing is in 0.1 s" in later.reason
    due = policy.decide(seen([100, 60, 40], replicas=2, owned=[0, 1, 0], at_s=30))
    assert due.reason.startswith("30 s since the last packing, packed by MBF")


def test_write_speeds_are_averages_over_the_window():
    policy = landau(packer="MBF", interval_s=1)
    for second in range(40):
        policy.decide(seen([100, 40], replicas=1, at_s=second))

    one_burst = policy.decide(seen([190, 40], replicas=1, at_s=40))
    assert (one_burst.action, one_burst.plan.count) == (Action.NO_CHANGE, 1), "(29·100 + 190)/30 + 40 fit 150"
    for second in range(41, 60):
        policy.decide(seen([190, 40], replicas=1, at_s=second))
    lasting = policy.decide(seen([190, 40], replicas=1, at_s=60))
    assert (lasting.action, lasting.plan.count) == (Action.UP, 2)


def test_a_full_replica_is_relieved_before_the_interval_ends():
    policy = landau(window_s=1)
    policy.decide(seen([90, 50], replicas=1, at_s=0))

    busy = policy.decide(seen([110, 80], replicas=1, at_s=1))
    full = policy.decide(seen([130, 80], replicas=1, at_s=2))

    assert busy.action is Action.NO_CHANGE, "above the packer's 150, below the 200 that it serves"
    assert (full.action, full.plan.count) == (Action.UP, 2)
    assert "payment-0 is full: 210 events/s written, 200 served (μ)" in full.reason


@st.composite
def situations(draw, sizes=loads):
    """Draw loads and owners (new and removed partitions, large consumer numbers)."""
    rates = draw(st.lists(sizes, max_size=14))
    partitions = draw(st.permutations(range(len(rates))))
    known = draw(st.lists(st.integers(0, 6) | st.sampled_from([40, 10**9]), min_size=1, max_size=4))
    owners = {p: draw(st.sampled_from(known)) for p in range(len(rates) + 2) if draw(st.booleans())}
    return {partition: rates[partition] for partition in partitions}, owners


def loads_by_consumer(owners, loads):
    """Return the loads of the partitions of each consumer, largest first."""
    owned = {}
    for partition, consumer in owners.items():
        owned.setdefault(consumer, []).append(loads[partition])
    return {consumer: sorted(values, reverse=True) for consumer, values in owned.items()}


@pytest.mark.parametrize("name", PACKERS)
def test_each_packer_has_its_own_result_for_the_same_partitions(name):
    assert PACKERS[name](LOADS, OWNERS, CAPACITY) == dict(enumerate(PLACED[name]))


@SOME
@given(situations(st.integers(0, 100).map(float)))
def test_modified_any_fit_is_stable_under_constant_loads(situation):
    loads, first = situation
    for name in PACKERS:
        owners = first
        for _ in range(30):
            before, owners = owners, PACKERS[name](loads, owners, CAPACITY)
        assert all(before[p] == owners[p] for p in loads if loads[p]), f"{name} still moves partitions with a load"


@SOME
@given(situations())
def test_every_partition_is_placed_and_no_consumer_exceeds_the_capacity(situation):
    loads, owners = situation
    for packer in PACKERS.values():
        placed = packer(loads, owners, CAPACITY)

        assert placed.keys() == loads.keys()
        assert all(isinstance(consumer, int) and consumer >= 0 for consumer in placed.values())
        for values in loads_by_consumer(placed, loads).values():  # a partition that is too large has its own consumer
            assert sum(values) <= CAPACITY * (1 + 1e-9) or len([load for load in values if load > 0]) == 1


@SOME
@given(situations())
def test_owners_of_removed_partitions_are_ignored(situation):
    loads, owners = situation
    present = {partition: owner for partition, owner in owners.items() if partition in loads}
    for packer in PACKERS.values():
        assert packer(loads, owners, CAPACITY) == packer(loads, present, CAPACITY)
