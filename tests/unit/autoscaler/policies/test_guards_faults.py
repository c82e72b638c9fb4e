"""What the group must survive: figures that make no sense, partitions that are stuck, policies that fail."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit.autoscaler.builders import Wants, seen

from autoscaler import jit
from autoscaler.model import Action, Decision, Plan
from autoscaler.policies.guards.faults import CountByLoad, Fallback, IgnoreStuckPartitions, plan_problem


class Does:
    """A policy made of a function."""

    name = "does"

    def __init__(self, function):
        self.decide = function


def fails(observation):
    raise ZeroDivisionError("float division by zero")


def by_lag(observation):
    """Want one replica for each 100 events of lag, two at least."""
    return Wants(max(2, sum(load.lag for load in observation.partitions) // 100)).decide(observation)


def stuck_at(guard, at_s, lag, *, owned=(0, 1, 0, 1), not_ready=()):
    """Decide at `at_s`: 10 events/s in each partition, all served but those of partition 1."""
    return guard.decide(seen([10] * 4, [0, lag, 0, 0], replicas=2, owned=owned, at_s=at_s, not_ready=not_ready))


def test_a_stuck_partition_is_an_alert_and_no_reason_to_scale():
    guard = IgnoreStuckPartitions(Does(by_lag), after_s=30)
    assert stuck_at(guard, 0, 5).reason == "wants 2"
    assert stuck_at(guard, 10, 105).reason == "wants 2"
    assert stuck_at(guard, 29, 295).reason == "wants 2"

    at_30 = stuck_at(guard, 30, 305)
    assert at_30.action is Action.HOLD, "305 events would ask for three"
    assert at_30.reason == (
        "wants 2; alert: partition 1 stuck for 30 s with 305 events of lag, while its owner payment-1 is ready; "
        "more replicas would not help"
    )
    assert "stuck for 40 s" in stuck_at(guard, 40, 405).reason
    assert stuck_at(guard, 41, 410).reason == "wants 4", "five events were served: it lives, and its lag counts"
    assert stuck_at(guard, 71, 710).reason.startswith("wants 2; alert: partition 1 stuck for 30 s")


@pytest.mark.parametrize(
    "change", [{"owned": (0, 0, 0, 1)}, {"not_ready": ("payment-1",)}], ids=["handed over", "owner not ready"]
)
def test_a_partition_is_given_time_anew_when_its_owner_changes_or_is_not_there(change):
    guard = IgnoreStuckPartitions(Does(by_lag), after_s=30)
    stuck_at(guard, 0, 5)
    stuck_at(guard, 20, 205, **change)

    assert "alert" not in stuck_at(guard, 30, 305).reason
    assert "alert" not in stuck_at(guard, 45, 455).reason
    assert "alert: partition 1 stuck" in stuck_at(guard, 60, 605).reason


PLANS = {
    "it has no replica": Plan((), {}),
    "it names a replica twice": Plan(("a", "a"), dict.fromkeys(range(3), "a")),
    "it has 4 replicas for 3 partitions": Plan(("a", "b", "c", "d"), None),
    "it names a partition that does not exist, 7": Plan(("a",), dict.fromkeys([0, 1, 2, 7], "a")),
    "it leaves out partition 1": Plan(("a",), {0: "a", 2: "a"}),
    "it gives partitions to b, which it does not name": Plan(("a",), {0: "a", 1: "b", 2: "a"}),
}


@pytest.mark.parametrize("wrong", PLANS)
def test_plans_that_cannot_be_carried_out_are_told(wrong):
    observation = seen([1] * 3, replicas=2)

    assert plan_problem(observation, PLANS[wrong]) == wrong
    decision = Fallback(Does(lambda _: Decision(Action.UP, PLANS[wrong], "why")), stand_in()).decide(observation)
    assert decision.action is Action.HOLD
    assert decision.fault == f"does made a plan that cannot be carried out: {wrong}"
    assert decision.reason.startswith(decision.fault)


def stand_in(**more):
    return CountByLoad(**({"latency_target_s": 0.5, "share": 0.9} | more))


def test_a_count_by_rate_and_lag_stands_in_for_a_policy_that_fails_until_it_can_decide_again():
    guard = Fallback(Does(fails), stand_in(down_s=60))

    calm = guard.decide(seen([100, 100], replicas=2, at_s=0))
    assert calm.action is Action.HOLD
    assert calm.fault == "does failed: ZeroDivisionError: float division by zero"
    assert calm.reason == f"{calm.fault}; 200 events/s and 0 events of lag ask for 2 by count: hold 2"

    surge = guard.decide(seen([200, 200, 100, 40], replicas=2, at_s=1))
    assert (surge.action, surge.plan.count) == (Action.UP, 3), "540 events/s at 180"
    assert sorted(surge.plan.assignment) == [0, 1, 2, 3]
    assert set(surge.plan.assignment.values()) == set(surge.plan.replicas), "the new one gets work"
    behind = guard.decide(seen([10] * 4, [2000, 0, 0, 0], replicas=2, at_s=2))
    assert behind.plan.count == 4, "2,000 events at 90, but no more than there are partitions"

    guard.policy = Wants(2)
    assert guard.decide(seen([10] * 4, replicas=2, at_s=3)).fault == "", "it can decide again"


def test_what_stands_in_saves_only_once_fewer_have_sufficed_for_a_while():
    guard = Fallback(Does(fails), stand_in(down_s=60))

    counts = {at_s: guard.decide(seen([100] * 6, replicas=6, at_s=at_s)).plan.count for at_s in range(0, 61, 5)}
    assert set(list(counts.values())[:-1]) == {6}
    assert counts[60] == 4, "600 events/s at 180"
    guard.policy = Wants(6)
    guard.decide(seen([100] * 6, replicas=4, at_s=61))
    guard.policy = Does(fails)
    assert guard.decide(seen([100] * 6, replicas=6, at_s=62)).plan.count == 6, "what the policy wanted counts anew"


@given(
    st.lists(st.floats(0, 300), min_size=1, max_size=8),
    st.integers(0, 9),
    st.lists(st.integers(0, 5000), min_size=8, max_size=8),
)
def test_every_plan_that_stands_in_can_be_carried_out_and_needs_no_compiler(rates, replicas, lags):
    observation = seen(rates, lags[: len(rates)], replicas=replicas)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jit._Compiled, "__call__", fails)
        decision = Fallback(Does(fails), stand_in()).decide(observation)

    assert decision.action is Action.HOLD or plan_problem(observation, decision.plan) == ""
