"""Timelines of replicas from the point of view of their scaler."""

import signal

import pytest
from live_fakes import FakeProcess
from live_worlds import ScalerWorld

from autoscaler.live.launcher import Orphan
from autoscaler.live.replica import Timeouts
from contracts.journal import ReplicaChange
from contracts.progress import ReplicaState


@pytest.fixture
def world() -> ScalerWorld:
    return ScalerWorld()


@pytest.mark.parametrize("pid", [7, 100])
def test_reports_of_an_earlier_process_are_ignored_even_with_the_same_pid(world: ScalerWorld, pid: int) -> None:
    world.reports.report("payment-0", FakeProcess(pid))
    world.step()
    world.scaler.request(["payment-0"])
    assert world.launcher.newest("payment-0").pid == 100
    world.step(1)
    assert not world.scaler.is_ready("payment-0")


def test_an_adopted_replica_is_recognized_by_its_saved_incarnation(world: ScalerWorld) -> None:
    adopted = FakeProcess(41)
    world.launcher.behind = [Orphan("payment-0", adopted, "another")]
    world.reports.report("payment-0", adopted)
    world.scaler.adopt(world.reports.reports)
    assert not world.scaler.is_ready("payment-0")


def test_a_released_member_is_stopped_only_after_it_owns_no_partitions(world: ScalerWorld) -> None:
    world.scaler.request(["payment-0"])
    process = world.member("payment-0")
    world.scaler.release("payment-0")
    world.step(1)
    assert process.signals == []
    assert world.scaler.requested == (), "a replica on its way out is not requested any more"
    world.reports.report("payment-0", process, ReplicaState.DRAINED)
    world.step()
    assert process.signals == [signal.SIGTERM]
    assert "left" not in world.changes(), "it costs money until it is gone"
    process.finish()
    world.step()
    assert world.changes() == ["requested", "started", "ready", "drained", "left"]
    assert not world.scaler.instances
    assert world.launcher.remembered == {}
    assert world.scaler.evictions == []


def test_a_replica_that_ignores_sigterm_is_killed_and_evicted(world: ScalerWorld) -> None:
    world.scaler.request(["payment-0"])
    process = world.member("payment-0")
    world.scaler.release("payment-0")
    world.step(Timeouts().drain_s)
    world.step(Timeouts().stop_s)
    assert process.signals == [signal.SIGTERM, signal.SIGKILL]
    world.step()
    assert world.changes()[-1] == "left"
    assert "14 s after SIGTERM" in world.detail(ReplicaChange.LEFT)
    assert [eviction.member_id for eviction in world.scaler.evictions] == ["member-100"]


def test_a_dead_replica_is_evicted_and_replaced_under_the_same_name(world: ScalerWorld) -> None:
    world.scaler.request(["payment-0"])
    process = world.member("payment-0")
    world.step(60)
    world.launcher.log_line = "out of memory"
    process.finish("killed by SIGKILL")
    world.step()
    assert world.changes()[-2:] == ["died", "requested"]
    assert world.detail(ReplicaChange.DIED) == "killed by SIGKILL; last log line: out of memory"
    (eviction,) = world.scaler.evictions
    assert (eviction.replica, eviction.member_id, eviction.incarnation) == ("payment-0", "member-100", "life-100")
    assert not world.scaler.is_ready("payment-0")
    world.step()
    assert len(world.launcher.processes["payment-0"]) == 2
    world.warm("payment-0")
    assert world.scaler.is_ready("payment-0")


def test_failed_starts_are_retried_with_back_off_and_journaled(world: ScalerWorld) -> None:
    world.launcher.log_line = "no such topic"
    world.scaler.request(["payment-0"])
    waits = []
    for _ in range(8):
        world.launcher.newest("payment-0").finish("exit status 1")
        world.step()
        assert world.scaler.is_absent("payment-0")
        started, waited = len(world.launcher.processes["payment-0"]), 0.0
        while len(world.launcher.processes["payment-0"]) == started:
            world.step(0.5)
            waited += 0.5
        waits.append(waited)
    assert waits == [0.5, 1, 2, 4, 8, 16, 30, 30]
    assert world.detail(ReplicaChange.START_FAILED) == (
        "exit status 1; last log line: no such topic; attempt 9 in 30 s"
    )
    assert world.changes().count("requested") == 1, "it was requested once and costs since"


def test_a_draining_replica_stays_if_a_later_decision_requests_it(world: ScalerWorld) -> None:
    world.scaler.request(["payment-0"])
    process = world.member("payment-0")
    world.scaler.release("payment-0")
    world.scaler.request(["payment-0"])
    assert world.scaler.is_ready("payment-0")
    world.step(60)
    assert process.signals == []


def test_after_a_restart_running_replicas_are_adopted_and_dead_ones_evicted(world: ScalerWorld) -> None:
    alive, dead, stopped = FakeProcess(41), FakeProcess(42), FakeProcess(43)
    dead.finish("killed by SIGKILL")
    stopped.finish()
    for number, (process, incarnation) in enumerate(((alive, "life-41"), (dead, "life-42"), (stopped, ""))):
        world.launcher.behind.append(Orphan(f"payment-{number}", process, incarnation))
        world.reports.report(f"payment-{number}", process)
    world.scaler.adopt(world.reports.reports)
    assert world.scaler.is_ready("payment-0")
    assert world.changes("payment-0") == ["adopted", "ready"]
    assert world.changes("payment-1") == ["died"]
    assert world.changes("payment-2") == ["left"], "its exit status says that it left in order"
    assert world.scaler.requested == ("payment-0",)
    assert [eviction.member_id for eviction in world.scaler.evictions] == ["member-42"]


def test_a_pending_replica_never_counts_as_failed(world: ScalerWorld) -> None:
    world.scaler.request(["payment-0"])
    instance = world.launcher.newest("payment-0")
    instance.pending_reason = "its image is being pulled"
    world.step(600)
    assert instance.signals == []
    instance.pending_reason = ""
    world.step(Timeouts().start_s - 1)
    world.warm("payment-0")
    assert world.changes() == ["requested", "started", "ready"]
