"""Where others bring replicas by the plan, it says how many there shall be before and after it can name them."""

from live_worlds import ALL_ON_0, HALVES, GroupWorld, started

from autoscaler.model import Action
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
    world.tell("payment-1", ReplicaState.WARM)
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
    world.tell("payment-0", ReplicaState.WARM)
    assert counts(world) == [(BOTH[:1], 2)]
    world.tell("payment-1", ReplicaState.WARM)
    assert counts(world)[1:] == [(BOTH, 2)]
