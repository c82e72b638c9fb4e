"""Policies by name, and their settings."""

import math

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

    assert str(refused.value) == f"policy 'algorithm-3' is unknown; known are {', '.join(POLICIES)}"


def test_names_of_new_replicas_follow_the_prefix():
    policy = make_policy("algorithm-2", PolicySettings(replica_prefix="till"), GuardSettings(minimum=2))

    assert policy.decide(seen([1, 1], replicas=0)).plan.replicas == ("till-0", "till-1")


def test_a_surge_and_its_end_under_all_guards():
    policy = make_policy("algorithm-2", PolicySettings(), GuardSettings(maximum=3, cool_down_down_s=5))

    surge = policy.decide(seen([100] * 5, replicas=1, at_s=0))
    assert (surge.action, surge.plan.count) == (Action.UP, 3)
    starting = policy.decide(seen([10] * 5, replicas=3, at_s=2, not_ready=["payment-2"]))
    assert starting.reason.endswith("vetoed: payment-2 not ready yet")
    ready = policy.decide(seen([10] * 5, replicas=3, at_s=4))
    assert ready.reason.endswith("vetoed: cooling down, 4 of 5 s")
    calm = policy.decide(seen([10] * 5, replicas=3, at_s=5))
    assert (calm.action, calm.plan.count) == (Action.DOWN, 1)


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"latency_target_s": 0}, "latency_target_s = 0: must be more than 0 s"),
        ({"latency_target_s": math.nan}, "latency_target_s = nan: must be more than 0 s"),
        ({"f_up": 0.3}, "f_down = 0.4, f_up = 0.3: must be 0 < f_down ≤ f_up ≤ 1"),
        ({"f_down": 0}, "f_down = 0, f_up = 0.9: must be 0 < f_down ≤ f_up ≤ 1"),
        ({"f_up": 1.1}, "f_down = 0.4, f_up = 1.1: must be 0 < f_down ≤ f_up ≤ 1"),
        ({"static_replicas": 0}, "static_replicas = 0: must be at least 1"),
    ],
)
def test_policy_settings_out_of_range(values, problem):
    with pytest.raises(ValueError, match="must") as refused:
        PolicySettings(**values)

    assert str(refused.value) == problem


def test_all_mistakes_are_named_at_once():
    with pytest.raises(ValueError, match="must") as refused:
        GuardSettings(minimum=0, maximum=-1, cool_down_up_s=-1, changing_limit_s=math.nan)

    assert str(refused.value) == (
        "minimum = 0: must be at least 1 replica; maximum = -1: must be 0 (the partitions) or at least minimum = 0; "
        "cool_down_up_s = -1: must be 0 s or more; changing_limit_s = nan: must be 0 s or more"
    )
    with pytest.raises(ValueError, match="maximum = 2"):
        GuardSettings(minimum=3, maximum=2)
