"""A group that places its partitions itself: comparators, which read no plan."""

import signal

from live_worlds import GroupWorld, started

from autoscaler.model import Action
from contracts.plan import PlanRecord
from contracts.progress import ReplicaState


def test_a_plan_with_owners_that_was_in_force_is_replaced_by_its_count() -> None:
    found = PlanRecord(epoch=4, at_us=0, replicas=("payment-0",), assignment=dict.fromkeys(range(4), "x"), reason="")
    world = GroupWorld(found, places_itself=True)
    world.group.start(("payment-0", "payment-1"))
    world.tell("payment-0")
    assert world.plans() == [("start", ("payment-0",), None)]


def test_a_replica_too_many_is_stopped_at_once() -> None:
    world = started(2, places_itself=True)
    world.decide(Action.DOWN, ("payment-0",), None)
    assert world.plans()[-1] == ("down", ("payment-0",), None)
    assert world.launcher.newest("payment-1").signals == [signal.SIGTERM]
    world.tell("payment-1", ReplicaState.STOPPING)
    world.launcher.newest("payment-1").finish()
    world.step()
    assert world.changes("payment-1")[-1] == "left"
    assert world.group.status().requested_replicas == 1
