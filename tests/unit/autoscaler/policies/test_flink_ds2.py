"""Tests of the model of Flink's autoscaler. Utilization: 0.6, 0.4 to 0.8; catch-up 5 s; first decision after 6 s."""

import pytest
from unit.autoscaler.policies.timelines import GroupTimeline

from autoscaler.model import Action
from autoscaler.policies.flink_ds2 import FlinkDs2, FlinkDs2Settings
from autoscaler.policies.settings import PolicySettings


def group(*, replicas=1, **options):
    return GroupTimeline(FlinkDs2(PolicySettings(), FlinkDs2Settings(**options)), replicas=replicas)


def even(total, partitions=12):
    return [total / partitions] * partitions


def decide_on_full_window(timeline, rates, lags=None, **more):
    """Return the first decision on a full window."""
    timeline.during(range(6), rates, lags, **more)
    return timeline.at(6, rates, lags, **more)


def test_no_decision_before_the_window_is_full():
    timeline = group()

    assert timeline.at(0, even(400)).action is Action.NO_CHANGE
    assert timeline.during(range(1, 6), even(400)) == []
    decision = timeline.at(6, even(400))
    assert (decision.action, decision.plan.count, decision.plan.assignment) == (Action.UP, 4, None)
    assert "400 events/s and 0 events of lag need 671 events/s, 1 serve 200" in decision.reason


@pytest.mark.parametrize(("rate", "planned"), [(160, 1), (161, 2)])
def test_no_scale_up_within_the_utilization_bounds(rate, planned):
    """160/0.6 > 200, but a replica that is busy 80 % of its time is within the bounds."""
    decision = decide_on_full_window(group(), even(rate))

    assert decision.plan.count == planned
    if planned == 1:
        assert "2 wanted, but the utilisation is within its bounds" in decision.reason


def test_scale_down_waits_and_uses_the_maximum_recommended_count():
    timeline = group(replicas=4)

    assert decide_on_full_window(timeline, even(60)).action is Action.NO_CHANGE
    assert timeline.during(range(7, 40), even(290)) == [], "3 are wanted for a while"
    assert timeline.during(range(40, 80), even(60)) == [(66, 3)]


def test_no_scale_down_while_a_backlog_is_served():
    """700 events of lag take more than 5 s at 60 events/s. The utilization is 27 %, but the count stays."""
    timeline = group(replicas=4, scale_down_interval_s=0, catch_up_s=100.0)

    decision = decide_on_full_window(timeline, even(60), [700] + [0] * 11)
    assert decision.action is Action.NO_CHANGE
    assert "backlog" in decision.reason
    assert timeline.during(range(7, 12), even(60), [200] + [0] * 11) == [(7, 2)]


def test_no_decision_while_a_replica_starts():
    timeline = group(replicas=2)

    decide_on_full_window(timeline, even(230))
    assert timeline.at(7, even(900), not_ready=["payment-1"]).action is Action.NO_CHANGE
    assert timeline.during(range(8, 20), even(900), not_ready=["payment-1"]) == []
    assert timeline.during(range(20, 30), even(900)) == [(25, 8)], "6 s after its last observation as starting"
