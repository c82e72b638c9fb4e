"""Plans with a replica count, for KEDA or an HPA, or for a group that assigns its partitions itself."""

from live_worlds import ALL_ON_0, HALVES, GroupWorld, started

from autoscaler.model import Action
from contracts.plan import PlanRecord
from contracts.progress import ReplicaState

BOTH = ("payment-0", "payment-1")


def counts(world: GroupWorld) -> list[tuple[tuple[str, ...], int]]:
    return [(plan.replicas, plan.count) for plan in world.log.written]


def test_the_count_rises_before_a_plan_names_the_replica_and_falls_after_it_has_drained() -> None:
    world = started()
    world.launcher.wanted = 1
    world.step()
    assert counts(world) == [(BOTH[:1], 1)], "the plan already has this count"
    world.decide(Action.UP, BOTH, HALVES)
    world.launcher.wanted = 2
    world.step()
    assert counts(world)[1:] == [(BOTH[:1], 2)]
    assert world.plans()[-1] == ("count", BOTH[:1], ALL_ON_0)
    world.step()
    assert len(world.log.written) == 2, "once"
    world.report("payment-1", ReplicaState.WARM)
    assert counts(world)[2:] == [(BOTH, 2)]
    world.decide(Action.DOWN, BOTH[:1], ALL_ON_0)
    world.step()
    assert counts(world)[3:] == [(BOTH[:1], 2)], "the count stays until it has drained"
    world.launcher.wanted = 1
    world.step()
    assert counts(world)[4:] == [(BOTH[:1], 1)]


def test_the_first_ready_replica_serves_alone_until_the_others_start() -> None:
    world = GroupWorld()
    world.launcher.wanted = 2
    world.group.start(BOTH)
    world.step()
    assert counts(world) == [], "no replica could own a partition"
    world.report("payment-0", ReplicaState.WARM)
    assert counts(world) == [(BOTH[:1], 2)]
    world.report("payment-1", ReplicaState.WARM)
    assert counts(world)[1:] == [(BOTH, 2)]


def test_a_plan_with_owners_is_replaced_by_a_count_if_the_group_assigns_itself() -> None:
    found = PlanRecord(epoch=4, at_us=0, replicas=("payment-0",), assignment=dict.fromkeys(range(4), "x"), reason="")
    world = GroupWorld(found, places_itself=True)
    world.group.start(("payment-0", "payment-1"))
    world.report("payment-0")
    assert world.plans() == [("start", ("payment-0",), None)]
