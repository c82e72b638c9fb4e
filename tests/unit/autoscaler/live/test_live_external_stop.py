"""Replicas that another process stops: a rolling restart, an operator, a drained node."""

from live_worlds import ALL_ON_0, HALVES, GroupWorld, ScalerWorld, started

from autoscaler.live.launcher import Exit, Orphan
from contracts.progress import ReplicaState


def asks_to_be_drained(world: GroupWorld) -> None:
    world.live(60)
    world.report("payment-1", ReplicaState.DRAINING)


def test_an_externally_stopped_replica_gives_up_its_partitions_and_gets_no_further_signal() -> None:
    world = started(2)
    asks_to_be_drained(world)
    assert world.plans()[-1] == ("repair", ("payment-0",), ALL_ON_0)
    assert "payment-1" in world.log.written[-1].reason
    world.report("payment-1", ReplicaState.DRAINED)
    world.report("payment-1", ReplicaState.STOPPING)
    assert world.launcher.newest("payment-1").signals == [], "a second signal could cut its drain short"
    assert len(world.plans()) == 2


def test_a_replica_that_dies_while_it_drains_is_evicted() -> None:
    world = started(2)
    asks_to_be_drained(world)
    world.launcher.newest("payment-1").finish("killed by SIGKILL")
    world.step()
    assert "died" in world.changes("payment-1")
    assert world.plans()[-1] == ("repair", ("payment-0",), ALL_ON_0)
    assert [one.member_id for one in world.log.written[-1].evictions] == ["member-101"]


def test_the_only_replica_serves_until_it_exits_and_then_its_replacement_takes_over() -> None:
    world = started(1)
    world.live(60)
    world.report("payment-0", ReplicaState.DRAINING)
    assert len(world.plans()) == 1, "no other replica can take over"
    world.launcher.newest("payment-0").finish()
    world.step()
    world.step()
    world.report("payment-0", ReplicaState.WARM)
    assert len(world.plans()) == 1, "the plan that is in force names it already"
    assert world.group.observe().replicas[0].ready


def test_a_rolling_restart_brings_back_all_replicas_one_by_one() -> None:
    world = started(2)
    for name, other in (("payment-0", "payment-1"), ("payment-1", "payment-0")):
        world.live(60)
        world.report(name, ReplicaState.DRAINING)
        assert set((world.log.written[-1].assignment or {}).values()) == {other}
        world.launcher.newest(name).finish()
        world.step()
        world.step()
        world.report(name, ReplicaState.WARM)
        assert world.log.written[-1].assignment == HALVES
    assert all(plan.evictions == () for plan in world.log.written)


def test_an_adopted_member_with_unknown_exit_status_is_evicted() -> None:
    world = ScalerWorld()
    world.scaler.request(["payment-1"])
    adopted = world.launcher.newest("payment-1")
    world.launcher.behind = [Orphan("payment-0", adopted)]
    world.reports.report("payment-0", adopted)
    world.scaler.adopt(world.reports.reports)
    adopted.ended = Exit("gone; exit status unknown", is_clean=True, is_status_known=False)
    world.step(60)
    assert world.changes()[-2:] == ["died", "requested"]
    assert len(world.scaler.evictions) == 1


def test_with_the_incremental_protocol_a_replica_is_ready_once_it_is_in_the_group() -> None:
    world = ScalerWorld(joins_warm=True)
    world.scaler.request(["payment-0"])
    process = world.warm("payment-0")
    assert not world.scaler.is_ready("payment-0"), "a plan that named it now would give its partitions to others first"
    world.reports.report("payment-0", process, ReplicaState.WARM, in_group=True)
    world.step()
    assert world.scaler.is_ready("payment-0")
    process.finish("killed by SIGKILL")
    world.step()
    assert len(world.scaler.evictions) == 1, "it was a member, though it owned nothing"
