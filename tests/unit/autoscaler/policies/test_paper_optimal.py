"""`paper-optimal` and `overprovisioned`: what the paper compares with."""

import pytest
from unit.autoscaler.builders import seen
from unit.autoscaler.policies.timelines import Obedient

from autoscaler.model import Action
from autoscaler.policies.references import (
    Overprovisioned,
    OverprovisionedSettings,
    PaperOptimal,
    PaperOptimalSettings,
)
from autoscaler.policies.settings import PolicySettings

OPTIMAL = PaperOptimal(PolicySettings())


@pytest.mark.parametrize(
    ("rates", "planned"),
    [
        ([84, 0], 1),
        ([85, 1], 2),  # less than 85, strictly; what is as large has a bin of its own
        ([85, 0], 1),  # which only idle partitions share
        ([42, 42, 42, 42], 2),
        ([42.5, 42.5], 2),
        ([84.999], 1),
        ([300, 10, 10], 2),
        ([0, 0, 0], 1),
        ([0], 1),
    ],
)
def test_bins_hold_less_than_85_events_per_second(rates, planned):
    assert OPTIMAL.decide(seen(rates, replicas=0)).plan.count == planned


def test_lag_is_not_looked_at():
    decision = OPTIMAL.decide(seen([20, 20], [5000, 5000]))

    assert decision.action is Action.HOLD
    assert decision.reason == "40 events/s fit 1 with less than 85 events/s each: hold 1"


def test_up_and_down_at_once():
    held = Obedient(OPTIMAL)

    assert held.during(range(1), [70] * 5) == [(0, 5)]
    assert held.decision.reason == "350 events/s fit 5 with less than 85 events/s each: up 1 → 5"
    assert held.during(range(1, 3), [10] * 5) == [(1, 1)]


def test_owners_change_only_where_they_must():
    kept = OPTIMAL.decide(seen([30, 25, 20, 15], replicas=2, owned=[0, 0, 1, 1]))
    moved = OPTIMAL.decide(seen([50, 40, 20, 15], replicas=2, owned=[0, 0, 1, 1]))

    assert kept.action is Action.HOLD, "Least-Loaded would balance 45 and 45"
    assert moved.action is Action.REASSIGN
    assert moved.plan.assignment[0] != moved.plan.assignment[1]


def test_partitions_without_owner_get_one():
    assert OPTIMAL.decide(seen([20, 20], owned=[])).action is Action.REASSIGN


def test_the_text_of_the_paper_as_a_setting():
    textual = PaperOptimal(PolicySettings(), PaperOptimalSettings(bin_events_per_s=100))

    assert textual.decide(seen([45, 45], replicas=1)).plan.count == 1
    assert OPTIMAL.decide(seen([45, 45], replicas=1)).plan.count == 2


def test_the_peak_is_packed_once_and_held():
    policy = Overprovisioned(PolicySettings(), OverprovisionedSettings(peak_rates=(80, 40, 40, 30)))
    held = Obedient(policy)

    start = held.at(0, [1, 1, 1, 1])
    assert start.reason == "3 for the peak: up 1 → 3"
    groups = {}
    for partition, owner in start.plan.assignment.items():
        groups.setdefault(owner, set()).add(partition)
    assert sorted(map(sorted, groups.values())) == [[0], [1, 3], [2]]
    owned = [held.names.index(start.plan.assignment[partition]) for partition in range(4)]
    for rates in ([80, 40, 40, 30], [500] * 4, [0] * 4):
        assert held.at(1, rates, owned=owned).reason == "3 for the peak: hold 3"


def test_a_partition_that_the_peak_does_not_name_is_idle_at_it():
    policy = Overprovisioned(PolicySettings(), OverprovisionedSettings(peak_rates=(80, 40)))

    assert set(policy.decide(seen([9, 9, 9], replicas=0)).plan.assignment) == {0, 1, 2}


def test_the_count_may_be_told_instead():
    policy = Overprovisioned(PolicySettings(), OverprovisionedSettings(replicas=2))

    assert sorted(policy.decide(seen([9, 9, 9])).plan.assignment.values()) == ["payment-0", "payment-0", "payment-1"]
