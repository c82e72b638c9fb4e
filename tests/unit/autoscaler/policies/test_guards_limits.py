"""Tests of the guards that limit counts and times of changes, and of plans that they resize."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit.autoscaler.builders import Wants, seen
from unit.autoscaler.policies.timelines import GroupTimeline

from autoscaler.model import Action, Plan
from autoscaler.policies.guards.limits import Bounds, CoolDown, StabiliseDown, WaitForReplicas, resize_plan
from autoscaler.policies.registry import make_policy


def test_the_count_is_limited_to_the_number_of_partitions():
    bounds = Bounds(Wants(7))

    first = bounds.decide(seen([10] * 5, replicas=1))
    assert first.action is Action.UP
    assert sorted(first.plan.assignment.values()) == [f"payment-{i}" for i in range(5)]
    assert "limited to 5" in first.reason

    then = bounds.decide(seen([10] * 5, replicas=5))
    assert then.action is Action.NO_CHANGE


@given(st.lists(st.floats(0, 300), min_size=1, max_size=8), st.integers(0, 9), st.integers(1, 9), st.integers(0, 9))
def test_limited_plans_are_complete_and_within_the_limits(rates, replicas, minimum, extra):
    policy = make_policy("algorithm-2")
    decision = Bounds(policy, minimum=minimum, maximum=minimum + extra).decide(seen(rates, replicas=replicas))

    assert min(minimum, len(rates)) <= decision.plan.count <= min(minimum + extra, len(rates))
    assert set(decision.plan.assignment) == set(range(len(rates)))
    assert set(decision.plan.assignment.values()) <= set(decision.plan.replicas)


def test_cool_down_vetoes_changes_soon_after_a_scaling():
    up, down = Wants(3), Wants(1)
    guard = CoolDown(up, up_s=10, down_s=20)

    assert guard.decide(seen([1] * 5, replicas=2, at_s=100)).action is Action.UP, "no scaling before"

    early = guard.decide(seen([1] * 5, replicas=2, at_s=109.5))
    assert early.action is Action.NO_CHANGE
    assert early.plan.replicas == ("payment-0", "payment-1")
    assert "cooling down, 9.5 of 10 s" in early.reason

    assert guard.decide(seen([1] * 5, replicas=2, at_s=110)).action is Action.UP
    guard.policy = down
    assert guard.decide(seen([1] * 5, replicas=3, at_s=129)).action is Action.NO_CHANGE, "19 s after the second UP"
    assert guard.decide(seen([1] * 5, replicas=3, at_s=130)).action is Action.DOWN


@pytest.mark.parametrize("wanted", [Wants(1), Wants(2, action=Action.REASSIGN)], ids=["down", "reassign"])
def test_only_up_passes_while_a_replica_is_not_ready(wanted):
    guard = WaitForReplicas(wanted, limit_s=30)

    def at(at_s, not_ready=()):
        return guard.decide(seen([1] * 5, replicas=2, at_s=at_s, not_ready=not_ready))

    assert at(0, ["payment-1"]).action is Action.NO_CHANGE
    assert at(0, ["payment-1"]).reason.endswith("; vetoed: payment-1 not ready yet")
    assert at(29, ["payment-1"]).action is Action.NO_CHANGE
    assert at(30, ["payment-1"]).action is not Action.NO_CHANGE, "after the limit it no longer blocks the group"
    assert at(31).action is not Action.NO_CHANGE
    assert at(32, ["payment-1"]).action is Action.NO_CHANGE, "it was ready in between: the wait restarts"


def test_scale_down_uses_the_maximum_count_wanted_within_the_window():
    guard = StabiliseDown(Wants(1), window_s=10)
    group = GroupTimeline(guard, replicas=6)

    def at(at_s, wanted):
        guard.policy = Wants(wanted, counts_only=True)
        group.at(at_s, [1] * 12)
        return group.count

    assert at(0, 3) == 6, "the count at the start counts as wanted"
    assert at(4, 5) == 6
    assert at(9, 2) == 6
    assert at(10, 2) == 5, "at 10 s the count of 4 s is the maximum"
    assert "the maximum wanted within 10 s is 5: down 6 → 5" in group.decision.reason
    assert at(14, 2) == 2, "the rest of the window has 2"


WITH_OWNERS = Plan((), {})


def with_rates(observation, rates):
    """Set μ of each replica; None: the typical rate (200 events/s)."""
    replicas = zip(observation.replicas, rates, strict=True)
    return replace(observation, replicas=tuple(replace(one, service_rate=rate) for one, rate in replicas))


def load_of(observation, plan):
    """Return the total λ of each replica."""
    load = dict.fromkeys(plan.replicas, 0.0)
    for one in observation.partitions:
        load[plan.assignment[one.partition]] += one.arrival_rate
    return load


def test_a_replica_at_half_the_speed_gets_half_the_load():
    observation = with_rates(seen([20.0] * 20, replicas=3), [None, 100.0, None])
    plan = resize_plan(observation, WITH_OWNERS, 3, "payment")
    assert load_of(observation, plan) == {"payment-0": 160, "payment-1": 80, "payment-2": 160}


@given(
    rates=st.lists(st.floats(0, 300), min_size=1, max_size=12),
    speeds=st.lists(st.none() | st.floats(1, 1000), min_size=1, max_size=6),
    count=st.integers(1, 8),
)
def test_a_resized_plan_is_complete_and_has_the_requested_count(rates, speeds, count):
    observation = with_rates(seen(rates, replicas=len(speeds)), speeds)
    plan = resize_plan(observation, WITH_OWNERS, count, "payment")
    assert plan.count == len(set(plan.replicas)) == count
    assert sorted(plan.assignment) == list(range(len(rates)))
    assert set(plan.assignment.values()) <= set(plan.replicas)
