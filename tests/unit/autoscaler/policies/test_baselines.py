"""Tests of `linear` and `ffd-2022`. μ = 200 events/s, W = 0.5 s: the capacity is 200 events/s and 100 events."""

import pytest
from unit.autoscaler.builders import seen
from unit.autoscaler.policies.timelines import GroupTimeline

from autoscaler.model import Action
from autoscaler.policies.baselines import FirstFit2022, Linear
from autoscaler.policies.settings import PolicySettings

LINEAR = Linear(PolicySettings())


@pytest.mark.parametrize(
    ("total", "now", "action", "planned"),
    [
        (90, 1, Action.NO_CHANGE, 1),  # exactly μ·W·0.9
        (91, 1, Action.UP, 2),
        (40, 2, Action.DOWN, 1),
        (0, 3, Action.DOWN, 1),
        (0, 0, Action.UP, 1),
    ],
)
def test_linear_divides_the_total_rate_by_the_rate_served_in_time(total, now, action, planned):
    decision = LINEAR.decide(seen([total / 2, total / 2], replicas=now))

    assert (decision.action, decision.plan.count) == (action, planned)
    assert decision.plan.assignment is None, "the group's own assignor places the partitions"


@pytest.mark.parametrize(
    ("rates", "lags", "planned"),
    [
        ([100, 100, 0], [0, 0, 0], 1),
        ([100, 101, 0], [0, 0, 0], 2),
        ([10, 10, 10], [50, 50, 1], 2),
        ([300, 10, 10], [0, 0, 0], 2),
    ],
)
def test_the_count_is_that_of_first_fit_with_the_full_capacity(rates, lags, planned):
    decision = FirstFit2022(PolicySettings()).decide(seen(rates, lags, replicas=0))

    assert (decision.action, decision.plan.count) == (Action.UP, planned)
    assert set(decision.plan.assignment) == set(range(len(rates)))


def test_unowned_partitions_are_assigned_even_while_cooling_down():
    timeline = GroupTimeline(FirstFit2022(PolicySettings()))

    timeline.at(0, [120, 120, 0])
    assert timeline.at(1, [120, 120, 0], owned=[]).action is Action.REASSIGN
