"""Plans that state a count: others bring the replicas by it, or the group places its partitions itself."""

from live_worlds import ALL_ON_0, HALVES, GroupWorld, started

from autoscaler.model import Action
from contracts.plan import PlanRecord
from contracts.progress import ReplicaState

BOTH = ("payment-0", "payment-1")


def counts(world: GroupWorld) -> list[tuple[tuple[str, ...], int]]:
    return [(plan.replicas, plan.count) for plan in world.log.written]


def test_one_more_is_wanted_before_a_plan_can_name_it_and_one_less_once_it_may_go() -> None:
    world = started()
    world.launcher.wanted = 1
    world.step()
    assert counts(world) == [(BOTH[:1], 1)], "says so already"
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
    assert counts(world)[3:] == [(BOTH[:1], 2)], "until it has drained"
    world.launcher.wanted = 1
    world.step()
    assert counts(world)[4:] == [(BOTH[:1], 1)]


def test_who_is_there_first_serves_alone_until_the_others_are_brought() -> None:
    world = GroupWorld()
    world.launcher.wanted = 2
    world.group.start(BOTH)
    world.step()
    assert counts(world) == [], "nobody could own a partition"
    world.report("payment-0", ReplicaState.WARM)
    assert counts(world) == [(BOTH[:1], 2)]
    world.report("payment-1", ReplicaState.WARM)
    assert counts(world)[1:] == [(BOTH, 2)]


def test_a_plan_with_owners_that_was_in_force_is_replaced_by_its_count() -> None:
    found = PlanRecord(epoch=4, at_us=0, replicas=("payment-0",), assignment=dict.fromkeys(range(4), "x"), reason="")
    world = GroupWorld(found, places_itself=True)
    world.group.start(("payment-0", "payment-1"))
    world.report("payment-0")
    assert world.plans() == [("start", ("payment-0",), None)]
