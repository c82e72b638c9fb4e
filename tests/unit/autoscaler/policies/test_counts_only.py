"""Where the group places its partitions itself, plans state a count."""

import pytest
from unit.autoscaler.builders import Wants, seen
from unit.autoscaler.policies.timelines import TOLD, Obedient

from autoscaler.model import Action
from autoscaler.policies.guards import CountsOnly
from autoscaler.policies.registry import POLICIES, make_policy
from autoscaler.policies.settings import GuardSettings, PolicySettings

COUNTS_ONLY = GuardSettings(counts_only=True)


def test_the_count_stays_and_the_owners_go():
    decision = CountsOnly(Wants(3)).decide(seen([10, 10], replicas=1))

    assert (decision.action, decision.plan.count, decision.plan.assignment) == (Action.UP, 3, None)
    assert decision.reason == "wants 3"


def test_to_reassign_is_to_hold():
    decision = CountsOnly(Wants(2, action=Action.REASSIGN)).decide(seen([10, 10], replicas=2))

    assert (decision.action, decision.plan.assignment) == (Action.HOLD, None)
    assert decision.plan.replicas == ("payment-0", "payment-1")
    assert decision.reason == "wants 2; vetoed: the group places its partitions itself"


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("owned", [[0, 0, 1, 1], None])
def test_every_policy_scales_a_group_whose_owners_may_be_unknown(name, owned):
    """A share group has no owners at all."""
    policy = make_policy(name, PolicySettings(static_replicas=3), COUNTS_ONLY, TOLD.get(name))
    group = Obedient(policy, replicas=2, obeys=False)

    decisions = [group.at(second, [150] * 4, [80] * 4, owned=owned or []) for second in range(10)]

    decision = next(one for one in decisions if one.action is Action.UP)
    assert decision.plan.assignment is None
    assert decision.plan.count >= 3


@pytest.mark.parametrize("name", ["algorithm-1", "algorithm-2", "linear"])
def test_silence_shrinks_a_group_without_owners(name):
    decision = make_policy(name, None, COUNTS_ONLY).decide(seen([0, 0, 0, 0], replicas=3, owned=[]))

    assert (decision.action, decision.plan.count, decision.plan.assignment) == (Action.DOWN, 1, None)


def test_the_bounds_hold_there_too():
    policy = make_policy("algorithm-2", None, GuardSettings(counts_only=True, maximum=2))

    decision = policy.decide(seen([150, 150, 150], replicas=1))

    assert (decision.plan.count, decision.plan.assignment) == (2, None)
