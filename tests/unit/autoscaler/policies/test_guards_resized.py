"""Tests of `resize_plan`: each replica gets load by its share of μ."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from unit.autoscaler.builders import seen

from autoscaler.model import Plan
from autoscaler.policies.guards.limits import resize_plan

WITH_OWNERS = Plan((), {})


def with_rates(observation, rates):
    """Set μ of each replica; None: the typical rate (200 events/s)."""
    replicas = zip(observation.replicas, rates, strict=True)
    return replace(observation, replicas=tuple(replace(one, service_rate=rate) for one, rate in replicas))


def load_of(observation, plan):
    """Return the total λ of each replica."""
    load = dict.fromkeys(plan.replicas, 0.0)
    for one in observation.partitions:
        load[plan.assignment[one.partition]] += one.arrival_rate
    return load


def test_a_replica_at_half_the_speed_gets_half_the_load():
    observation = with_rates(seen([20.0] * 20, replicas=3), [None, 100.0, None])
    plan = resize_plan(observation, WITH_OWNERS, 3, "payment")
    assert load_of(observation, plan) == {"payment-0": 160, "payment-1": 80, "payment-2": 160}


@given(
    rates=st.lists(st.floats(0, 300), min_size=1, max_size=12),
    speeds=st.lists(st.none() | st.floats(1, 1000), min_size=1, max_size=6),
    count=st.integers(1, 8),
)
def test_a_resized_plan_is_complete_and_has_the_requested_count(rates, speeds, count):
    observation = with_rates(seen(rates, replicas=len(speeds)), speeds)
    plan = resize_plan(observation, WITH_OWNERS, count, "payment")
    assert plan.count == len(set(plan.replicas)) == count
    assert sorted(plan.assignment) == list(range(len(rates)))
    assert set(plan.assignment.values()) <= set(plan.replicas)
