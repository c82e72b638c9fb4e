"""From bins to plans, from plans to decisions."""

from unit.autoscaler.builders import seen

from autoscaler.model import Action, Plan
from autoscaler.packing.bins import Bin, Item
from autoscaler.policies.planning import change, number, plan_for, replicas_for, unowned


def test_a_plan_that_changes_nothing_is_a_hold():
    observation = seen([10, 10], replicas=2)

    decision = change(observation, Plan(observation.replica_names, observation.assignment), "too busy")

    assert decision.action is Action.HOLD
    assert decision.reason == "too busy: hold, no other placement on 2 is better"


def test_a_replica_that_is_ready_is_kept_before_one_that_is_not():
    observation = seen([10, 10], replicas=2, owned=[], not_ready=["payment-0"])

    assert plan_for(observation, [Bin((Item(0, 10, 0), Item(1, 10, 0)))], "payment").replicas == ("payment-1",)


def test_replicas_stay_in_the_order_of_their_requests_and_new_ones_follow():
    observation = seen([30, 20, 10], replicas=["payment-2", "payment-0"], owned=[1, 0])
    bins = [Bin((Item(partition, 10, 0),)) for partition in range(3)]

    plan = plan_for(observation, bins, "payment")

    assert plan.replicas == ("payment-2", "payment-0", "payment-1")
    assert dict(plan.assignment) == {0: "payment-0", 1: "payment-2", 2: "payment-1"}


def test_long_lists_of_partitions_are_cut():
    assert unowned(seen([1] * 8, owned=[0])) == "7 of 8 partitions have no owner (1, 2, 3, 4, 5, …)"
    assert unowned(seen([1] * 8)) == ""


def test_rounding_errors_ask_for_no_replica():
    assert replicas_for(180.00000000000003, 90.0) == 2
    assert replicas_for(180.1, 90.0) == 3
    assert replicas_for(0.0, 90.0) == 1


def test_figures_in_reasons():
    assert [number(value) for value in (113, 89.684, 0.0, 180.00000000000003)] == ["113", "89.7", "0", "180"]
