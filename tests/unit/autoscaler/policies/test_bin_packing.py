"""Tests of Algorithms 1 and 2: action, plan and reason."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit.autoscaler.builders import seen

from autoscaler.model import Action
from autoscaler.packing.bins import Bin, Item
from autoscaler.policies.bin_packing import BinPacking
from autoscaler.policies.planning import plan_for
from autoscaler.policies.settings import PolicySettings

ONE = BinPacking(PolicySettings(), tail_aware=False)
TWO = BinPacking(PolicySettings(), tail_aware=True)
both = pytest.mark.parametrize("policy", [ONE, TWO], ids=["algorithm-1", "algorithm-2"])


@both
def test_a_lag_that_a_replica_cannot_serve_in_time_scales_up(policy):
    decision = policy.decide(seen([30, 30, 30], [60, 53, 0], replicas=1))

    assert decision.action is Action.UP
    assert decision.plan.replicas == ("payment-0", "payment-1")
    assert "payment-0 has 113 events, 90 allowed (μ·W·0.9)" in decision.reason


@both
def test_a_load_that_fits_fewer_replicas_at_f_down_scales_down(policy):
    decision = policy.decide(seen([20, 19, 1], [1, 1, 1], replicas=2))

    assert decision.action is Action.DOWN
    assert dict(decision.plan.assignment) == dict.fromkeys(range(3), "payment-0")
    assert "40 events/s and 3 events of lag fit 1 with 80 events/s (μ·0.4) and 40 events (μ·W·0.4)" in decision.reason


@both
def test_an_overloaded_replica_reassigns_if_the_count_suffices(policy):
    decision = policy.decide(seen([100, 90, 20, 20], replicas=2, owned=[0, 0, 1, 1]))

    assert decision.action is Action.REASSIGN
    assert dict(decision.plan.assignment) == {0: "payment-0", 1: "payment-1", 2: "payment-1", 3: "payment-0"}
    assert "payment-0 has 190 events/s, 180 allowed (μ·0.9): reassign 2 of 4 partitions" in decision.reason


def test_algorithm_2_plans_for_arrivals_during_the_rebalance():
    """91 events need 2 replicas. After a pause of 2 s at 60 events/s they are 211, which need 3."""
    observation = seen([20, 20, 20], [31, 30, 30], replicas=1, rebalance_time_s=2.0)

    assert ONE.decide(observation).plan.count == 2
    assert TWO.decide(observation).plan.count == 3


def test_algorithm_2_scales_up_if_the_lag_after_a_reassignment_needs_it():
    observation = seen([60, 60, 5], [50, 41, 0], replicas=2, owned=[0, 0, 1], rebalance_time_s=1.0)

    assert ONE.decide(observation).action is Action.REASSIGN
    assert TWO.decide(observation).action is Action.UP


def test_algorithm_2_defers_a_scale_down_if_the_load_after_it_would_not_fit():
    observation = seen([30, 30], replicas=2, rebalance_time_s=1.0)

    assert ONE.decide(observation).action is Action.DOWN
    decision = TWO.decide(observation)
    assert decision.action is Action.NO_CHANGE
    assert "2 are needed after 1000 ms of rebalancing" in decision.reason


observations = st.integers(1, 8).flatmap(
    lambda partitions: st.builds(
        seen,
        st.lists(st.floats(0, 400), min_size=partitions, max_size=partitions),
        st.lists(st.integers(0, 400), min_size=partitions, max_size=partitions),
        replicas=st.integers(5, 7),
        owned=st.lists(st.integers(0, 4), min_size=0, max_size=partitions),
        rebalance_time_s=st.floats(0, 3),
    )
)


@both
@given(observation=observations)
def test_a_plan_is_stable_once_it_is_carried_out(policy, observation):
    plan = policy.decide(observation).plan
    index = {name: position for position, name in enumerate(plan.replicas)}
    after = seen(
        [load.arrival_rate for load in observation.partitions],
        [load.lag for load in observation.partitions],
        replicas=plan.replicas,
        owned=[index.get(plan.assignment.get(p)) for p in range(len(observation.partitions))],
        rebalance_time_s=observation.rebalance_time_s,
    )

    assert policy.decide(after).plan == plan or policy.decide(after).action is Action.DOWN


def test_a_ready_replica_stays_rather_than_one_that_is_not_ready():
    observation = seen([10, 10], replicas=2, owned=[], not_ready=["payment-0"])

    assert plan_for(observation, [Bin((Item(0, 10, 0), Item(1, 10, 0)))], "payment").replicas == ("payment-1",)
