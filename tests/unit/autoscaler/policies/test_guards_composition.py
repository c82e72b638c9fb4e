"""Tests of all guards together: a sequence of faults, and groups without owners."""

import pytest
from unit.autoscaler.builders import Wants, seen
from unit.autoscaler.policies.timelines import REQUIRED_OPTIONS, GroupTimeline

from autoscaler.model import Action
from autoscaler.policies.guards import add_guards
from autoscaler.policies.registry import POLICIES, make_policy
from autoscaler.policies.settings import GuardSettings, PolicySettings

COUNTS_ONLY = GuardSettings(counts_only=True)


def test_guards_handle_a_surge_a_cool_down_and_a_failing_policy():
    inner = Wants(3)
    policy = add_guards(inner, PolicySettings(), GuardSettings(cool_down_down_s=5, fallback_down_s=10))

    surge = policy.decide(seen([100] * 5, replicas=1, at_s=0))
    assert (surge.action, surge.plan.count) == (Action.UP, 3)

    inner.count = 1
    assert policy.decide(seen([10] * 5, replicas=3, at_s=2)).reason.endswith("vetoed: cooling down, 2 of 5 s")

    inner.count = -1  # `Wants` fails with this
    broken = policy.decide(seen([10] * 5, replicas=3, at_s=3))
    assert broken.action is Action.NO_CHANGE
    assert "wants failed: IndexError" in broken.reason
    assert broken.plan.replicas == ("payment-0", "payment-1", "payment-2")
    assert policy.decide(seen([10] * 5, replicas=3, at_s=14)).plan.count == 1, "one replica has sufficed for 10 s"

    inner.count = 1
    calm = policy.decide(seen([10] * 5, replicas=3, at_s=15))
    assert (calm.action, calm.plan.count) == (Action.DOWN, 1)


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("owned", [[0, 0, 1, 1], None])
def test_every_policy_scales_a_group_without_known_owners(name, owned):
    """A share group has no owners."""
    policy = make_policy(name, PolicySettings(static_replicas=3), COUNTS_ONLY, REQUIRED_OPTIONS.get(name))
    group = GroupTimeline(policy, replicas=2, obeys=False)

    decisions = [group.at(second, [150] * 4, [80] * 4, owned=owned or []) for second in range(10)]

    decision = next(one for one in decisions if one.action is Action.UP)
    assert decision.plan.assignment is None
    assert decision.plan.count >= 3
