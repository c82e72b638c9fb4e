"""From bins to plans, from plans to decisions."""

from unit.autoscaler.builders import seen

from autoscaler.packing.bins import Bin, Item
from autoscaler.policies.planning import plan_for


def test_a_replica_that_is_ready_is_kept_before_one_that_is_not():
    observation = seen([10, 10], replicas=2, owned=[], not_ready=["payment-0"])

    assert plan_for(observation, [Bin((Item(0, 10, 0), Item(1, 10, 0)))], "payment").replicas == ("payment-1",)
