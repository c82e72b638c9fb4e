"""Plans after replicas die, hang or fail to start, and after a restart of the autoscaler."""

import pytest
from live_fakes import FakeProcess
from live_worlds import ALL_ON_0, HALVES, GroupWorld, started

from autoscaler.live.launcher import Orphan
from autoscaler.live.silence import HUNG_AFTER_S
from autoscaler.model import Action
from autoscaler.ports import NotReadyError
from contracts.plan import PlanRecord
from contracts.progress import ReplicaState


def test_a_death_is_published_with_its_eviction_and_again_when_the_replacement_is_warm() -> None:
    world = started(2)
    world.live(60)
    world.launcher.newest("payment-1").finish("killed by SIGKILL")
    world.step()
    assert world.plans()[-1] == ("repair", ("payment-0",), ALL_ON_0)
    evicting = world.log.written[-1]
    assert [eviction.replica for eviction in evicting.evictions] == ["payment-1"]
    assert "payment-1 (dead)" in evicting.reason
    world.step(1)
    assert len(world.plans()) == 2, "an eviction is published once"
    world.report("payment-1", ReplicaState.WARM)
    assert world.plans()[-1] == ("repair", ("payment-0", "payment-1"), HALVES)
    assert world.log.written[-1].evictions == ()
    assert world.log.written[-1].reason == "all 2 replicas are ready again"


def test_a_replica_that_dies_while_draining_is_evicted_by_repeating_the_plan() -> None:
    world = started(2)
    world.decide(Action.DOWN, ("payment-0",), ALL_ON_0)
    world.launcher.newest("payment-1").finish("killed by SIGKILL")
    world.step()
    assert world.plans()[-1] == ("repair", ("payment-0",), ALL_ON_0)
    assert "payment-1 died" in world.log.written[-1].reason
    assert [eviction.replica for eviction in world.log.written[-1].evictions] == ["payment-1"]
    assert world.changes("payment-1")[-1] == "left", "it was not requested any more"


def test_a_failed_start_does_not_delay_ready_replicas() -> None:
    world = started()
    thirds = {0: "payment-0", 1: "payment-1", 2: "payment-2", 3: "payment-2"}
    world.decide(Action.UP, ("payment-0", "payment-1", "payment-2"), thirds)
    world.report("payment-1", ReplicaState.WARM)
    of_ready = ("part", ("payment-0", "payment-1"), ALL_ON_0 | {1: "payment-1"})
    assert world.plans()[-1] == of_ready
    world.launcher.newest("payment-2").finish("exit status 1")
    world.step()
    assert world.plans()[-1] == of_ready, "the present owner keeps the rest"
    world.step(0.5)
    world.report("payment-2", ReplicaState.WARM)
    assert world.plans()[-1] == ("up", ("payment-0", "payment-1", "payment-2"), thirds)


def test_a_restarted_autoscaler_replaces_replicas_that_died_meanwhile() -> None:
    plan = PlanRecord(epoch=7, at_us=0, replicas=("payment-0", "payment-1"), assignment=HALVES, reason="")
    world = GroupWorld(plan)
    alive, dead = FakeProcess(40), FakeProcess(41)
    dead.finish("killed by SIGKILL")
    world.launcher.behind = [
        Orphan("payment-0", alive),
        Orphan("payment-1", dead),
    ]
    world.reports.report("payment-0", alive, epoch=9)
    world.reports.report("payment-1", dead)
    world.group.start(("payment-0",))
    assert [eviction.replica for eviction in world.log.written[-1].evictions] == ["payment-1"]
    assert world.log.written[-1].epoch == 10, "above every epoch that a replica has read"
    assert "payment-1" in world.launcher.processes


def test_a_silent_replica_counts_as_hung_while_the_brokers_answer() -> None:
    world = started(2)
    world.clock.advance(1)
    for _ in range(int(HUNG_AFTER_S)):
        assert "died" not in world.changes("payment-1")
        world.clock.advance(1)
        world.report("payment-0")
    world.step()
    assert "died" in world.changes("payment-1")
    assert [eviction.replica for eviction in world.log.written[-1].evictions] == ["payment-1"]


def test_silence_during_a_broker_outage_kills_no_replica() -> None:
    world = started(2)
    world.loads.missing = "end offset: no broker"
    for _ in range(60):
        world.clock.advance(1)
        with pytest.raises(NotReadyError):
            world.group.observe()
        world.group.advance()
    world.loads.missing = None
    world.step(HUNG_AFTER_S - 1)
    assert "died" not in world.changes("payment-0") + world.changes("payment-1")


def silent_but(world: GroupWorld, *heard: str, for_s: float) -> None:
    """Let time pass while only some replicas report."""
    for _ in range(round(for_s)):
        world.clock.advance(1)
        for name in heard:
            world.reports.report(name, world.launcher.newest(name))
        world.group.observe()
        world.group.advance()


def killed(world: GroupWorld) -> list[str]:
    return [name for name in world.launcher.processes if "died" in world.changes(name)]


@pytest.mark.parametrize(("replicas", "heard"), [(1, 0), (2, 0), (3, 0), (3, 1), (4, 2), (8, 4)])
def test_no_replica_is_killed_if_most_or_the_only_one_are_silent(replicas: int, heard: int) -> None:
    world = started(replicas)
    silent_but(world, *[f"payment-{ordinal}" for ordinal in range(heard)], for_s=10 * HUNG_AFTER_S)
    assert killed(world) == []
    assert "payment-" in world.problems.current["reports"]
    assert all(one.silent_s > 100 for one in world.group.observe().replicas[heard:])


def test_adopted_replicas_that_the_plan_names_are_ready_and_stay_without_reports() -> None:
    old = started(3)
    world = GroupWorld(old.log.newest)
    world.launcher.processes = old.launcher.processes
    world.launcher.behind = [Orphan(name, old.launcher.newest(name)) for name in old.scaler.instances]
    world.group.start(("payment-0",))
    assert [world.scaler.is_ready(f"payment-{n}") for n in range(3)] == [True] * 3
    for _ in range(60):
        world.step(1)
    assert not any(process.signals for each in world.launcher.processes.values() for process in each)


@pytest.mark.parametrize(("heard", "killed"), [(0, False), (1, True)])
def test_a_start_without_a_report_is_given_up_only_if_others_report(heard: int, killed: bool) -> None:
    world = GroupWorld()
    world.group.start(("payment-0", "payment-1"))
    for _ in range(40):
        for name in ("payment-0",)[:heard]:
            world.report(name)
        world.step(1)
    assert bool(world.launcher.processes["payment-1"][0].signals) is killed
    assert not world.launcher.processes["payment-0"][0].signals


def test_several_hung_replicas_are_replaced_one_at_a_time() -> None:
    world = started(7)
    well = [f"payment-{ordinal}" for ordinal in range(5)]
    silent_but(world, *well, for_s=60)
    assert len(killed(world)) == 1, "the next one only when this one is back"
    (first,) = killed(world)
    world.report(first, ReplicaState.WARM)
    silent_but(world, *well, first, for_s=3)
    assert sorted(killed(world)) == ["payment-5", "payment-6"]


def test_a_replica_that_commits_without_reporting_is_not_killed() -> None:
    world = started(2)
    world.loads.advancing = {1}
    silent_but(world, "payment-0", for_s=60)
    assert killed(world) == []
    world.reports.report("payment-0", world.launcher.newest("payment-0"), partitions=(0, 1, 2, 3))
    world.step()
    world.step()
    assert killed(world) == ["payment-1"], "the other one serves that partition now"


def test_a_group_without_reports_is_still_scaled_up() -> None:
    world = started(1)
    silent_but(world, for_s=20)
    world.decide(Action.UP, ("payment-0", "payment-1"), HALVES)
    silent_but(world, for_s=4)
    assert len(world.plans()) == 1
    silent_but(world, for_s=2)
    assert world.plans()[-1] == ("up", ("payment-0", "payment-1"), HALVES), "its process lives, and no plan harms it"
    silent_but(world, for_s=60)
    assert world.changes("payment-1") == ["requested", "started", "ready"]
    silent_but(world, "payment-0", for_s=HUNG_AFTER_S - 2)
    assert killed(world) == [], "reports arrive again; whose come later is not hung for that"
