"""Flink's autoscaler as timelines. Defaults: target 0.6 between 0.4 and 0.8, catch-up 5 s, first decision after 6 s."""

import pytest
from unit.autoscaler.policies.timelines import Obedient

from autoscaler.model import Action
from autoscaler.policies.flink_ds2 import FlinkDs2, FlinkDs2Settings
from autoscaler.policies.settings import PolicySettings


def flink(**options):
    return FlinkDs2(PolicySettings(), FlinkDs2Settings(**options))


def group(*, replicas=1, obeys=True, **options):
    return Obedient(flink(**options), replicas=replicas, obeys=obeys)


def even(total, partitions=12):
    return [total / partitions] * partitions


def decided(held, rates, lags=None, **more):
    """Return the first decision on a full window."""
    held.during(range(6), rates, lags, **more)
    return held.at(6, rates, lags, **more)


def test_nothing_happens_before_the_window_is_full():
    held = group()

    assert held.at(0, even(400)).reason == "the window is full in 6 s: hold 1"
    assert held.during(range(1, 6), even(400)) == []
    decision = held.at(6, even(400))
    assert (decision.action, decision.plan.count, decision.plan.assignment) == (Action.UP, 4, None)
    assert decision.reason == "400 events/s and 0 events of lag need 671 events/s, 1 serve 200: up 1 → 4"


def test_the_three_terms_of_the_target():
    """A lag of 100 in 5 s, 60 events/s that pile up for 1 s of restart, 60 events/s at 60 %: 20 + 12 + 100."""
    decision = decided(group(), [60], [100], rebalance_time_s=1.0)

    assert decision.reason.startswith("60 events/s and 100 events of lag need 132 events/s, 1 serve 200")


@pytest.mark.parametrize(("rate", "planned"), [(160, 1), (161, 2)])
def test_no_growth_within_the_bounds(rate, planned):
    """167/0.6 > 200, yet a replica that is busy 80 % of its time is left alone."""
    decision = decided(group(), even(rate))

    assert decision.plan.count == planned
    if planned == 1:
        assert decision.reason.endswith("2 wanted, but the utilisation is within its bounds: hold 1")


def test_down_waits_for_a_minute_and_takes_the_most_wanted_meanwhile():
    held = group(replicas=4)

    assert decided(held, even(60)).reason.endswith("2 wanted, but down is delayed, 0 of 60 s: hold 4")
    assert held.during(range(7, 40), even(290)) == [], "3 are wanted for a while"
    assert held.during(range(40, 80), even(60)) == [(66, 3)]


def test_never_down_while_a_backlog_is_being_served():
    """700 events of lag take more than 5 s at 60 a second. The capacity is 27 % used, and kept."""
    held = group(replicas=4, scale_down_interval_s=0, catch_up_s=100.0)

    decision = decided(held, even(60), [700] + [0] * 11)
    assert decision.reason.endswith(
        "wanted, but the utilisation is within its bounds, for a backlog is being served: " + ("hold 4")
    )
    assert held.during(range(7, 12), even(60), [200] + [0] * 11) == [(7, 2)]


def test_nothing_is_decided_while_a_replica_starts():
    held = group(replicas=2)

    decided(held, even(230))
    assert held.at(7, even(900), not_ready=["payment-1"]).reason == "payment-1 not ready: hold 2"
    assert held.during(range(8, 20), even(900), not_ready=["payment-1"]) == []
    assert held.during(range(20, 30), even(900)) == [(25, 8)], "6 s after it was last seen starting"
