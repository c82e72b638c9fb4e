"""Tests of the guards against stuck partitions and failing policies."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit.autoscaler.builders import Wants, seen

from autoscaler import jit
from autoscaler.model import Action, Decision, Plan
from autoscaler.policies.guards.faults import CountByLoad, Fallback, IgnoreStuckPartitions, plan_problem
from autoscaler.policies.settings import GuardSettings, PolicySettings


class FunctionPolicy:
    """A policy that calls a function."""

    name = "function"

    def __init__(self, function):
        self.decide = function


def fail(observation):
    raise ZeroDivisionError("float division by zero")


def by_lag(observation):
    """Want one replica for each 100 events of lag, two at least."""
    return Wants(max(2, sum(load.lag for load in observation.partitions) // 100)).decide(observation)


def stuck_at(guard, at_s, lag, *, owned=(0, 1, 0, 1), not_ready=()):
    """Decide at `at_s` with 10 events/s in each partition, all served except in partition 1."""
    return guard.decide(seen([10] * 4, [0, lag, 0, 0], replicas=2, owned=owned, at_s=at_s, not_ready=not_ready))


def test_a_stuck_partition_is_reported_and_does_not_scale_the_group():
    guard = IgnoreStuckPartitions(FunctionPolicy(by_lag), after_s=30)
    assert stuck_at(guard, 0, 5).reason == "wants 2"
    assert stuck_at(guard, 10, 105).reason == "wants 2"
    assert stuck_at(guard, 29, 295).reason == "wants 2"

    at_30 = stuck_at(guard, 30, 305)
    assert at_30.action is Action.NO_CHANGE, "305 events would need three"
    assert "partition 1 stuck for 30 s with 305 events of lag although its owner payment-1 is ready" in at_30.reason
    assert "stuck for 40 s" in stuck_at(guard, 40, 405).reason
    assert stuck_at(guard, 41, 410).reason == "wants 4", "five events were served: it is not stuck, and its lag counts"
    assert stuck_at(guard, 71, 710).reason.startswith("wants 2; alert: partition 1 stuck for 30 s")


@pytest.mark.parametrize(
    "change", [{"owned": (0, 0, 0, 1)}, {"not_ready": ("payment-1",)}], ids=["handed over", "owner not ready"]
)
def test_a_new_owner_or_one_that_is_not_ready_restarts_the_time_of_a_stuck_partition(change):
    guard = IgnoreStuckPartitions(FunctionPolicy(by_lag), after_s=30)
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
    "partition 1 is missing": Plan(("a",), {0: "a", 2: "a"}),
    "it assigns partitions to b, which is none of its replicas": Plan(("a",), {0: "a", 1: "b", 2: "a"}),
}


@pytest.mark.parametrize("problem", PLANS)
def test_an_invalid_plan_is_reported_as_a_fault(problem):
    observation = seen([1] * 3, replicas=2)

    assert plan_problem(observation, PLANS[problem]) == problem
    decision = Fallback(FunctionPolicy(lambda _: Decision(Action.UP, PLANS[problem], "why")), stand_in()).decide(
        observation
    )
    assert decision.action is Action.NO_CHANGE
    assert problem in decision.fault
    assert decision.reason.startswith(decision.fault)


def stand_in(down_s=60.0):
    return CountByLoad(PolicySettings(), GuardSettings(fallback_down_s=down_s))


def test_a_count_by_rate_and_lag_replaces_a_policy_while_it_fails():
    guard = Fallback(FunctionPolicy(fail), stand_in(down_s=60))

    calm = guard.decide(seen([100, 100], replicas=2, at_s=0))
    assert calm.action is Action.NO_CHANGE
    assert "ZeroDivisionError: float division by zero" in calm.fault
    assert calm.reason.startswith(f"{calm.fault}; 200 events/s and 0 events of lag need 2 replicas")

    surge = guard.decide(seen([200, 200, 100, 40], replicas=2, at_s=1))
    assert (surge.action, surge.plan.count) == (Action.UP, 3), "540 events/s at 180"
    assert sorted(surge.plan.assignment) == [0, 1, 2, 3]
    assert set(surge.plan.assignment.values()) == set(surge.plan.replicas), "the new replica gets partitions"
    behind = guard.decide(seen([10] * 4, [2000, 0, 0, 0], replicas=2, at_s=2))
    assert behind.plan.count == 4, "2,000 events at 90 each, limited to the number of partitions"

    guard.policy = Wants(2)
    assert guard.decide(seen([10] * 4, replicas=2, at_s=3)).fault == "", "the policy works again"


def test_the_fallback_scales_down_only_after_fewer_replicas_sufficed_for_down_s():
    guard = Fallback(FunctionPolicy(fail), stand_in(down_s=60))

    counts = {at_s: guard.decide(seen([100] * 6, replicas=6, at_s=at_s)).plan.count for at_s in range(0, 61, 5)}
    assert set(list(counts.values())[:-1]) == {6}
    assert counts[60] == 4, "600 events/s at 180"
    guard.policy = Wants(6)
    guard.decide(seen([100] * 6, replicas=4, at_s=61))
    guard.policy = FunctionPolicy(fail)
    assert guard.decide(seen([100] * 6, replicas=6, at_s=62)).plan.count == 6, (
        "a decision of the policy restarts the time"
    )


@given(
    st.lists(st.floats(0, 300), min_size=1, max_size=8),
    st.integers(0, 9),
    st.lists(st.integers(0, 5000), min_size=8, max_size=8),
)
def test_every_fallback_plan_is_valid_and_needs_no_compiler(rates, replicas, lags):
    observation = seen(rates, lags[: len(rates)], replicas=replicas)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jit._Compiled, "__call__", fail)
        decision = Fallback(FunctionPolicy(fail), stand_in()).decide(observation)

    assert decision.action is Action.NO_CHANGE or plan_problem(observation, decision.plan) == ""
