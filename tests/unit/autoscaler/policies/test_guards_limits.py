"""Bounds, cool-down, stabilisation, waiting for replicas that start: each as a timeline."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit.autoscaler.builders import Wants, seen

from autoscaler.model import Action
from autoscaler.policies.guards.limits import Bounds, CoolDown, StabiliseDown, WaitForReplicas
from autoscaler.policies.registry import make_policy


def test_bounds_cap_at_the_partitions_then_hold_there():
    bounds = Bounds(Wants(7))

    first = bounds.decide(seen([10] * 5, replicas=1))
    assert first.action is Action.UP
    assert sorted(first.plan.assignment.values()) == [f"payment-{i}" for i in range(5)]
    assert first.reason == "wants 7; capped at 5, for replicas cannot share a partition: up 1 → 5"

    then = bounds.decide(seen([10] * 5, replicas=5))
    assert then.action is Action.HOLD
    assert then.reason.endswith("hold 5, no placement relieves the busiest replica enough")


@given(st.lists(st.floats(0, 300), min_size=1, max_size=8), st.integers(0, 9), st.integers(1, 9), st.integers(0, 9))
def test_bounded_plans_are_complete_and_within_the_bounds(rates, replicas, minimum, extra):
    policy = make_policy("algorithm-2")
    decision = Bounds(policy, minimum=minimum, maximum=minimum + extra).decide(seen(rates, replicas=replicas))

    assert min(minimum, len(rates)) <= decision.plan.count <= min(minimum + extra, len(rates))
    assert set(decision.plan.assignment) == set(range(len(rates)))
    assert set(decision.plan.assignment.values()) <= set(decision.plan.replicas)


def test_cool_down_over_time():
    up, down = Wants(3), Wants(1)
    guard = CoolDown(up, up_s=10, down_s=20)

    assert guard.decide(seen([1] * 5, replicas=2, at_s=100)).action is Action.UP, "nothing to cool down from"

    early = guard.decide(seen([1] * 5, replicas=2, at_s=109.5))
    assert early.action is Action.HOLD
    assert early.plan.replicas == ("payment-0", "payment-1")
    assert early.reason == "wants 3; vetoed: cooling down, 9.5 of 10 s"

    assert guard.decide(seen([1] * 5, replicas=2, at_s=110)).action is Action.UP
    guard.policy = down
    assert guard.decide(seen([1] * 5, replicas=3, at_s=129)).action is Action.HOLD, "19 s after the second UP"
    assert guard.decide(seen([1] * 5, replicas=3, at_s=130)).action is Action.DOWN


@pytest.mark.parametrize("wanted", [Wants(1), Wants(2, action=Action.REASSIGN)], ids=["down", "reassign"])
def test_nothing_but_up_while_a_replica_is_not_ready(wanted):
    guard = WaitForReplicas(wanted, limit_s=30)

    def at(at_s, not_ready=()):
        return guard.decide(seen([1] * 5, replicas=2, at_s=at_s, not_ready=not_ready))

    assert at(0, ["payment-1"]).action is Action.HOLD
    assert at(0, ["payment-1"]).reason.endswith("; vetoed: payment-1 not ready yet")
    assert at(29, ["payment-1"]).action is Action.HOLD
    assert at(30, ["payment-1"]).action is not Action.HOLD, "it is a fault by now, and the group goes on"
    assert at(31).action is not Action.HOLD
    assert at(32, ["payment-1"]).action is Action.HOLD, "it was ready in between: the wait starts anew"


class World:
    """A group that becomes what is decided, at once."""

    def __init__(self, guard, *, replicas, partitions=12):
        self.guard = guard
        self.replicas = replicas
        self.partitions = partitions
        self.reason = ""

    def at(self, at_s, wanted, *, counts_only=True):
        """Return the count after the decision at `at_s`, at which the policy inside wants `wanted`."""
        self.guard.policy = Wants(wanted, counts_only=counts_only)
        decision = self.guard.decide(seen([1] * self.partitions, replicas=self.replicas, at_s=at_s))
        self.reason = decision.reason
        if decision.action is not Action.HOLD:
            self.replicas = decision.plan.count
        return self.replicas


def test_down_goes_to_the_most_that_was_wanted_within_the_window():
    world = World(StabiliseDown(Wants(1), window_s=10), replicas=6)

    assert world.at(0, 3) == 6, "the count at the start counts as wanted"
    assert world.reason == "wants 3; vetoed: the most wanted within 10 s is 6"
    assert world.at(4, 5) == 6
    assert world.at(9, 2) == 6
    assert world.at(10, 2) == 5, "at 10 s the wish of 4 s is the largest"
    assert world.reason == "wants 2; the most wanted within 10 s is 5: down 6 → 5"
    assert world.at(14, 2) == 2, "what is left of the window wants 2"
