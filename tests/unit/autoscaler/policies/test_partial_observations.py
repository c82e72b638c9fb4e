"""Every policy in every guard plans for the worst case of unknown values."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from unit.autoscaler.builders import seen
from unit.autoscaler.policies.timelines import REQUIRED_OPTIONS

from autoscaler.model import Action
from autoscaler.policies.guards.faults import plan_problem
from autoscaler.policies.registry import POLICIES, make_policy
from autoscaler.policies.settings import GuardSettings

EVERY_GUARD = GuardSettings(
    fallback=False, stabilisation_down_s=3, cool_down_up_s=2, cool_down_down_s=2, stuck_after_s=5, max_replicas=5
)
GUARDS = {
    "bare": None,
    "guarded": GuardSettings(fallback=False),
    "every guard": EVERY_GUARD,
    "counts only": replace(EVERY_GUARD, counts_only=True),
    "fallback": GuardSettings(),
}


@st.composite
def histories(draw):
    """Draw complete ticks, and one at which some partitions and replicas are unknown."""
    partitions, replicas = draw(st.integers(1, 6)), draw(st.integers(1, 5))
    rates = st.lists(st.sampled_from([0.0, 17.0, 90.0, 450.0]), min_size=partitions, max_size=partitions)
    lags = st.lists(st.sampled_from([0, 60, 5000]), min_size=partitions, max_size=partitions)
    at = [
        seen(draw(rates), draw(lags), replicas=replicas, at_s=second + 0.1) for second in range(draw(st.integers(2, 9)))
    ]
    last = at.pop()
    unread = draw(st.sets(st.integers(0, partitions - 1), min_size=1))
    silent = draw(st.sets(st.sampled_from(last.replica_names)))
    partial = replace(
        last,
        partitions=tuple(replace(one, age_s=3.0) if one.partition in unread else one for one in last.partitions),
        replicas=tuple(replace(one, silent_s=4.0) if one.name in silent else one for one in last.replicas),
    )
    return at, last, partial


@pytest.mark.parametrize("guards", GUARDS.values(), ids=GUARDS)
@pytest.mark.parametrize("name", POLICIES)
@settings(max_examples=15, deadline=None)
@given(history=histories())
def test_no_policy_fails_or_plans_for_less_than_the_worst_case(name, guards, history):
    before, worst, partial = history
    complete, incomplete = (make_policy(name, None, guards, REQUIRED_OPTIONS.get(name)) for _ in range(2))
    for observation in before:
        complete.decide(observation)
        incomplete.decide(observation)

    known, guessed = complete.decide(worst), incomplete.decide(partial)

    assert (
        guessed.action is Action.NO_CHANGE or not plan_problem(partial, guessed.plan) or plan_problem(worst, known.plan)
    )
    assert guessed.plan.count >= known.plan.count
    assert not guessed.fault
