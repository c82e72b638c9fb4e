"""The autoscaler continues to decide, and keeps its own epochs, with any control records of others."""

import msgspec
import pytest
from extremes import full_plan
from live_worlds import ALL_ON_0, GroupWorld, started

from autoscaler.model import Action
from contracts.fields import MAX_EPOCH_LEAD


@pytest.mark.parametrize(("reported", "next_epoch"), [(7, 8), (1 + MAX_EPOCH_LEAD, 2 + MAX_EPOCH_LEAD), (10**7, 2)])
def test_a_replica_may_know_a_later_plan_but_none_that_is_impossible(reported: int, next_epoch: int) -> None:
    world = started(2)
    world.report("payment-0", epoch=reported, assigned_epoch=1)
    assert ("plans" in world.problems.current) == (next_epoch == 2)
    world.decide(Action.REASSIGN, ("payment-0", "payment-1"), ALL_ON_0)
    assert world.log.written[-1].epoch == next_epoch


PLAN = full_plan("payment", "payments.requested", 7)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"replicas": tuple(f"payment-{number}" for number in range(300))},
            "did not fit 4 partitions and 4 replicas",
        ),
        (
            {"assignment": {0: "payment-0", 1: "payment-9", 99: "payment-1"}},
            "did not fit 4 partitions and 4 replicas",
        ),
        ({"replicas": ("payment-0",) * 3}, "did not fit 4 partitions and 4 replicas"),
        ({"assignment": None}, "stays in force"),
    ],
)
def test_a_plan_found_at_the_start_is_repaired_with_its_reason(changes: dict[str, object], words: str) -> None:
    world = GroupWorld(msgspec.structs.replace(PLAN, **changes))
    world.group.start(("payment-0",))
    intent = world.group._publisher.intent
    assert intent is not None
    assert intent.reason.startswith(f"plan 7 {words}")
    owners = intent.plan.assignment
    assert owners is None or (set(owners) == set(range(4)) and set(owners.values()) <= set(intent.plan.replicas))
