"""Tests of the reference policies: `paper-optimal`, `overprovisioned`, `clairvoyant`."""

import pytest
from unit.autoscaler.builders import seen
from unit.autoscaler.policies.timelines import GroupTimeline

from autoscaler.model import Action
from autoscaler.policies.references import (
    Clairvoyant,
    ClairvoyantSettings,
    Overprovisioned,
    OverprovisionedSettings,
    PaperOptimal,
)
from autoscaler.policies.settings import PolicySettings

OPTIMAL = PaperOptimal(PolicySettings())


@pytest.mark.parametrize(
    ("rates", "planned"),
    [
        ([84, 0], 1),
        ([85, 1], 2),  # strictly less than 85; a load of 85 gets its own bin
        ([85, 0], 1),  # which only idle partitions share
        ([300, 10, 10], 2),
        ([0, 0, 0], 1),
    ],
)
def test_bins_have_less_than_85_events_per_second(rates, planned):
    assert OPTIMAL.decide(seen(rates, replicas=0)).plan.count == planned


def test_the_packing_of_the_peak_is_kept():
    policy = Overprovisioned(PolicySettings(), OverprovisionedSettings(peak_rates=(80, 40, 40, 30)))
    timeline = GroupTimeline(policy)

    start = timeline.at(0, [1, 1, 1, 1])
    assert start.reason == "3 for the peak: up 1 → 3"
    groups = {}
    for partition, owner in start.plan.assignment.items():
        groups.setdefault(owner, set()).add(partition)
    assert sorted(map(sorted, groups.values())) == [[0], [1, 3], [2]]
    owned = [timeline.names.index(start.plan.assignment[partition]) for partition in range(4)]
    for rates in ([80, 40, 40, 30], [500] * 4, [0] * 4):
        assert timeline.at(1, rates, owned=owned).action is Action.NO_CHANGE


BOTH, ALONE = ("a", "b"), ("b",)
SCHEDULE = ((100_000, BOTH, ("a", "b", "a")), (1_100_000, BOTH, ("b", "b", "a")), (3_100_000, ALONE, ("b",) * 3))


def test_clairvoyant_carries_out_its_schedule():
    policy = Clairvoyant(PolicySettings(), ClairvoyantSettings(schedule=SCHEDULE))

    plans = [policy.decide(seen([50] * 3, replicas=1, at_s=at_s)).plan for at_s in (0.1, 1.099, 1.1, 2.1, 99.1)]

    assert [(plan.replicas, tuple(plan.assignment.values())) for plan in plans] == [
        SCHEDULE[0][1:], SCHEDULE[0][1:], SCHEDULE[1][1:], SCHEDULE[1][1:], SCHEDULE[2][1:]
    ]  # fmt: skip
