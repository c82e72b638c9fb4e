"""From bins to plans, from plans to decisions."""

from unit.autoscaler.builders import seen

from autoscaler.packing.bins import Bin, Item
from autoscaler.policies.planning import plan_for, replicas_for


def test_a_replica_that_is_ready_is_kept_before_one_that_is_not():
    observation = seen([10, 10], replicas=2, owned=[], not_ready=["payment-0"])

    assert plan_for(observation, [Bin((Item(0, 10, 0), Item(1, 10, 0)))], "payment").replicas == ("payment-1",)


def test_replicas_stay_in_the_order_of_their_requests_and_new_ones_follow():
    observation = seen([30, 20, 10], replicas=["payment-2", "payment-0"], owned=[1, 0])
    bins = [Bin((Item(partition, 10, 0),)) for partition in range(3)]

    plan = plan_for(observation, bins, "payment")

    assert plan.replicas == ("payment-2", "payment-0", "payment-1")
    assert dict(plan.assignment) == {0: "payment-0", 1: "payment-2", 2: "payment-1"}


def test_rounding_errors_ask_for_no_replica():
    assert replicas_for(180.00000000000003, 90.0) == 2
    assert replicas_for(180.1, 90.0) == 3
    assert replicas_for(0.0, 90.0) == 1
