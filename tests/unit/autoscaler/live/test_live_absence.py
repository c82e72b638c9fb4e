"""A departed member with a grace period: its partitions wait for its return, as an option."""

from live_worlds import ALL_ON_0, HALVES, GroupWorld, started

from contracts.progress import ReplicaState


def dies(world: GroupWorld) -> None:
    world.live(60)
    world.launcher.newest("payment-1").finish("killed by SIGKILL")
    world.step()


def test_the_plan_still_names_the_dead_one_and_says_for_how_long() -> None:
    world = started(2, grace_s=5.0)
    dies(world)
    assert world.plans()[-1] == ("repair", ("payment-0", "payment-1"), HALVES)
    written = world.log.written[-1]
    assert [one.replica for one in written.evictions] == ["payment-1"]
    assert written.grace_s == 5.0
    assert "payment-1 died" in written.reason
    assert len(world.launcher.processes["payment-1"]) == 1
    world.step()
    assert len(world.launcher.processes["payment-1"]) == 2, "it is started again at once"


def test_one_that_comes_back_in_time_takes_up_its_partitions_without_another_plan() -> None:
    world = started(2, grace_s=5.0)
    dies(world)
    written = len(world.plans())
    world.step(3)
    world.report("payment-1", ReplicaState.WARM)
    world.report("payment-1")
    world.step(10)
    assert len(world.plans()) == written


def test_after_the_grace_the_others_take_its_partitions_until_it_is_back() -> None:
    world = started(2, grace_s=5.0)
    dies(world)
    world.step(4.9)
    assert world.plans()[-1][1] == ("payment-0", "payment-1")
    world.step(0.2)
    assert world.plans()[-1] == ("repair", ("payment-0",), ALL_ON_0)
    assert world.log.written[-1].grace_s == 0.0
    world.report("payment-1", ReplicaState.WARM)
    assert world.plans()[-1] == ("repair", ("payment-0", "payment-1"), HALVES)
