"""Replicas that commit at intervals: lag is seen that is no more. And what else policies are told of the world."""

import pytest
from unit.autoscaler.simulator.worlds import Story

from autoscaler.simulator.settings import SimulationSettings

BURST = [(0, k % 2) for k in range(10)]
"""Ten events at once, 10 ms each, on one replica."""


def seen(at_ms, **how):
    story = Story(BURST, **how)
    story.world.look_for(at_ms * 1000)
    return story.at(at_ms).lags()


def test_what_was_finished_since_the_commit_still_counts_as_lag():
    assert seen(95) == [0, 1], "nine are finished"
    assert seen(95, commit_age_s=0.06) == [3, 4], "three were finished at 35"
    assert seen(95, commit_age_s=0.06, observation_delay_s=0.02) == [4, 5], "as at 75, of which one was finished at 15"


def test_before_the_first_commit_everything_is_lag():
    assert seen(50, commit_age_s=0.2) == [5, 5]


def test_each_tick_sees_the_commits_of_its_own_time():
    story = Story(BURST, commit_age_s=0.03)
    for tick_ms in (45, 145):
        story.world.look_for(tick_ms * 1000)
    assert sum(story.at(45).lags()) == 9
    assert sum(story.at(145).lags()) == 0


def test_policies_are_told_the_way_through_the_broker():
    assert Story(BURST, planned_overhead_s=0.015).at(100).observe().overhead_s == 0.015
    assert Story(BURST).at(100).observe().overhead_s == 0


@pytest.mark.parametrize("name", ["commit_age_s", "planned_overhead_s"])
def test_times_below_zero_are_refused(name):
    with pytest.raises(ValueError, match=f"{name} = -1: must be 0 s or more"):
        SimulationSettings(**{name: -1})
