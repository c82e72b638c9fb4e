"""With a grace period, the partitions of a dead replica wait for its restart."""

from live_worlds import ALL_ON_0, HALVES, GroupWorld, started

from contracts.progress import ReplicaState


def kill_payment_1(world: GroupWorld) -> None:
    world.live(60)
    world.launcher.newest("payment-1").finish("killed by SIGKILL")
    world.step()


def test_after_the_grace_period_the_other_replicas_take_the_partitions_until_it_is_back() -> None:
    world = started(2, grace_s=5.0)
    kill_payment_1(world)
    world.step(4.9)
    assert world.plans()[-1][1] == ("payment-0", "payment-1")
    world.step(0.2)
    assert world.plans()[-1] == ("repair", ("payment-0",), ALL_ON_0)
    assert world.log.written[-1].grace_s == 0.0
    world.report("payment-1", ReplicaState.WARM)
    assert world.plans()[-1] == ("repair", ("payment-0", "payment-1"), HALVES)
