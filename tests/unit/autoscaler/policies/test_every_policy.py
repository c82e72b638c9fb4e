"""Properties of every policy, for random groups and histories."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from unit.autoscaler.builders import seen
from unit.autoscaler.policies.timelines import REQUIRED_OPTIONS

from autoscaler.model import Action
from autoscaler.policies.registry import POLICIES, make_policy
from autoscaler.policies.settings import GuardSettings


@st.composite
def histories(draw):
    """Draw ticks of a group: counts change, replicas start, λ may be 0 or far above μ, owners may be missing."""
    partitions = draw(st.integers(1, 6))
    rates = st.lists(st.sampled_from([0.0, 0.5, 17.0, 90.0, 450.0]), min_size=partitions, max_size=partitions)
    lags = st.lists(st.sampled_from([0, 1, 60, 5000]), min_size=partitions, max_size=partitions)
    at_s, ticks = 0.1, []
    for _ in range(draw(st.integers(1, 12))):
        replicas = draw(st.integers(0, 5))
        owned = draw(st.lists(st.integers(0, replicas - 1), max_size=partitions)) if replicas else []
        not_ready = draw(st.sampled_from([(), ("payment-0",)]))
        ticks.append(seen(draw(rates), draw(lags), replicas=replicas, owned=owned, at_s=at_s, not_ready=not_ready))
        at_s += draw(st.sampled_from([0.5, 1.0, 1.0, 20.0]))
    return ticks


@pytest.mark.parametrize("guards", [None, GuardSettings(fallback=False)], ids=["bare", "guarded"])
@pytest.mark.parametrize("name", POLICIES)
@settings(max_examples=25, deadline=None)
@given(history=histories())
def test_every_decision_is_complete_and_repeatable(name, guards, history):
    first, again = (make_policy(name, None, guards, REQUIRED_OPTIONS.get(name)) for _ in range(2))

    assert first.name == name
    for observation in history:
        decision = first.decide(observation)
        assert again.decide(observation) == decision
        plan, now = decision.plan, observation.requested_replicas
        assert decision.reason
        assert "nan" not in decision.reason
        assert len(set(plan.replicas)) == plan.count
        if decision.action is Action.NO_CHANGE:
            assert plan.replicas == observation.replica_names
            continue
        assert plan.count >= 1
        assert decision.action is not Action.REASSIGN or plan.replicas == observation.replica_names
        assert (plan.count > now, plan.count < now) == (decision.action is Action.UP, decision.action is Action.DOWN)
        if guards is not None:
            assert plan.count <= max(1, len(observation.partitions))
        if plan.assignment is not None:
            assert set(plan.assignment) == {load.partition for load in observation.partitions}
            assert set(plan.assignment.values()) <= set(plan.replicas)
