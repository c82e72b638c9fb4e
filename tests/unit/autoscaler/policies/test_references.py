"""Policies that are told what no policy can know: `paper-optimal`, `overprovisioned`, `clairvoyant`."""

import pytest
from unit.autoscaler.builders import seen
from unit.autoscaler.policies.timelines import Obedient

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


def clairvoyant(schedule):
    return Clairvoyant(PolicySettings(), ClairvoyantSettings(schedule=schedule))


BOTH, ALONE = ("a", "b"), ("b",)
SCHEDULE = ((100_000, BOTH, ("a", "b", "a")), (1_100_000, BOTH, ("b", "b", "a")), (3_100_000, ALONE, ("b",) * 3))


def test_the_schedule_is_carried_out_as_it_was_found():
    policy = clairvoyant(SCHEDULE)

    plans = [policy.decide(seen([50] * 3, replicas=1, at_s=at_s)).plan for at_s in (0.1, 1.099, 1.1, 2.1, 99.1)]

    assert [(plan.replicas, tuple(plan.assignment.values())) for plan in plans] == [
        SCHEDULE[0][1:], SCHEDULE[0][1:], SCHEDULE[1][1:], SCHEDULE[1][1:], SCHEDULE[2][1:],
    ]  # fmt: skip
