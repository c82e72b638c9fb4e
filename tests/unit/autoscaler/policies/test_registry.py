"""Policies by name, and their settings."""

import pytest
from unit.autoscaler.builders import seen
from unit.autoscaler.policies.timelines import TOLD

from autoscaler.model import Action
from autoscaler.policies.registry import POLICIES, UnknownPolicyError, make_policy
from autoscaler.policies.settings import GuardSettings, PolicySettings


@pytest.mark.parametrize("name", POLICIES)
def test_a_policy_bears_the_name_it_is_made_by(name):
    assert make_policy(name, options=TOLD.get(name)).name == name
    assert POLICIES[name].description


def test_an_unknown_name_is_answered_with_those_known():
    with pytest.raises(UnknownPolicyError) as refused:
        make_policy("algorithm-3")

    assert (
        str(refused.value)
        == f"policy 'algorithm-3' is unknown; did you mean algorithm-2? Known are {', '.join(POLICIES)}"
    )


def test_names_of_new_replicas_follow_the_prefix():
    policy = make_policy("algorithm-2", PolicySettings(replica_prefix="till"), GuardSettings(min_replicas=2))

    assert policy.decide(seen([1, 1], replicas=0)).plan.replicas == ("till-0", "till-1")


def test_a_surge_and_its_end_under_all_guards():
    policy = make_policy("algorithm-2", PolicySettings(), GuardSettings(max_replicas=3, cool_down_down_s=5))

    surge = policy.decide(seen([100] * 5, replicas=1, at_s=0))
    assert (surge.action, surge.plan.count) == (Action.UP, 3)
    starting = policy.decide(seen([10] * 5, replicas=3, at_s=2, not_ready=["payment-2"]))
    assert starting.reason.endswith("vetoed: payment-2 not ready yet")
    ready = policy.decide(seen([10] * 5, replicas=3, at_s=4))
    assert ready.reason.endswith("vetoed: cooling down, 4 of 5 s")
    calm = policy.decide(seen([10] * 5, replicas=3, at_s=5))
    assert (calm.action, calm.plan.count) == (Action.DOWN, 1)
