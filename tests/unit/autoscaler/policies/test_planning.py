"""Tests of plans from bins."""

from unit.autoscaler.builders import seen

from autoscaler.packing.bins import Bin, Item
from autoscaler.policies.planning import plan_for


def test_a_ready_replica_stays_rather_than_one_that_is_not_ready():
    observation = seen([10, 10], replicas=2, owned=[], not_ready=["payment-0"])

    assert plan_for(observation, [Bin((Item(0, 10, 0), Item(1, 10, 0)))], "payment").replicas == ("payment-1",)
