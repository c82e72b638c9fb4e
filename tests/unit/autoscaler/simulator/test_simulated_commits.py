"""Replicas that commit at intervals: lag is seen that is no more. And what else policies are told of the world."""

from itertools import pairwise

import pytest
from unit.autoscaler.simulator.worlds import Story

from autoscaler.simulator.settings import Tick

BURST = [(0, k % 2) for k in range(10)]
"""Ten events at once, 10 ms each, on one replica."""


def seen(at_ms, **how):
    story = Story(BURST, **how)
    story.world.look_for(Tick(at_ms * 1000))
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
        story.world.look_for(Tick(tick_ms * 1000))
    assert sum(story.at(45).lags()) == 9
    assert sum(story.at(145).lags()) == 0


def test_policies_are_told_the_way_through_the_broker():
    assert Story(BURST, planned_overhead_s=0.015).at(100).observe().overhead_s == 0.015
    assert Story(BURST).at(100).observe().overhead_s == 0


def ages_seen(known_s=None):
    """How old commits are at ten ticks, one a second, ms: a replica is done with an event every 10 ms."""
    busy = [(0, 0)] * 1100
    story = Story(busy, partitions=1, commit_age_s=0.3, commit_interval_s=0.4)
    ticks_ms = range(1000, 10_000, 1000)
    for at_ms in ticks_ms:
        story.world.look_for(Tick(at_ms * 1000, {} if known_s is None else {"payment-0": known_s}))
    return [at_ms - 10 * (1100 - sum(story.at(at_ms).lags())) for at_ms in ticks_ms]


def test_a_replica_commits_by_its_own_clock():
    """At 0.4 s each, every second tick sees commits that are half an interval older."""
    ages_ms = ages_seen()
    assert all(90 <= age_ms <= 510 for age_ms in ages_ms)
    assert {round(abs(one - other), -1) for one, other in pairwise(ages_ms)} == {200}


def test_the_age_of_a_commit_may_be_known():
    assert all(age_ms == pytest.approx(200, abs=20) for age_ms in ages_seen(0.2))
    assert all(age_ms == pytest.approx(500, abs=20) for age_ms in ages_seen(5.0)), "none is older than its interval"


def test_policies_may_be_told_other_times_than_the_true_ones():
    told = {"startup_s": 0.4, "planned_startup_s": 2.0, "commit_age_s": 0.06, "planned_commit_age_s": 0.05}
    story = Story(BURST, **told)
    story.world.look_for(Tick(100_000))
    seen = story.at(100).observe()
    assert (seen.startup_s, seen.commit_age_s) == (2.0, 0.05)
    assert sum(load.lag for load in seen.partitions) == 6
