"""From a decision to a plan in force."""

import pytest
from live_worlds import ALL_ON_0, HALVES, GroupWorld, started

from autoscaler.live.plan_log import PlanNotWrittenError
from autoscaler.model import Action
from autoscaler.ports import NotReadyError
from contracts.journal import PlanWritten
from contracts.progress import ReplicaState


def test_the_first_plan_is_written_once_all_its_replicas_are_ready() -> None:
    world = GroupWorld()
    world.group.start(("payment-0", "payment-1"))
    with pytest.raises(NotReadyError, match="plan"):
        world.group.observe()
    world.report("payment-0", ReplicaState.WARM)
    assert world.plans() == []
    world.report("payment-1", ReplicaState.WARM)
    assert world.plans() == [("start", ("payment-0", "payment-1"), HALVES)]
    assert world.group.observe().assignment == HALVES


def test_scale_up_publishes_the_plan_once_the_new_replica_is_ready() -> None:
    world = started()
    world.decide(Action.UP, ("payment-0", "payment-1"), HALVES)
    assert len(world.plans()) == 1
    observation = world.group.observe()
    assert [(one.name, one.ready) for one in observation.replicas] == [("payment-0", True), ("payment-1", False)]
    assert observation.assignment == HALVES, "the intended assignment counts as decided"
    world.step(1)
    assert len(world.plans()) == 1
    world.report("payment-1", ReplicaState.WARM)
    assert world.plans()[-1] == ("up", ("payment-0", "payment-1"), HALVES)
    assert world.log.written[-1].reason == "because of up"
    (plan,) = [entry for entry in world.journal if isinstance(entry, PlanWritten)][1:]
    assert (plan.epoch, plan.moved) == (2, 2)


def test_scale_down_publishes_at_once_and_stops_the_replica_after_its_drain() -> None:
    world = started(2)
    world.decide(Action.DOWN, ("payment-0",), ALL_ON_0)
    assert world.plans()[-1] == ("down", ("payment-0",), ALL_ON_0)
    assert [one.name for one in world.group.observe().replicas] == ["payment-0"]
    assert world.group.status().requested_replicas == 1
    assert world.launcher.newest("payment-1").signals == []
    world.report("payment-1", ReplicaState.DRAINED)
    world.launcher.newest("payment-1").finish()
    world.step()
    assert world.changes("payment-1")[-2:] == ["drained", "left"]


def test_a_silent_replica_is_marked_and_reported_without_blocking_the_observation() -> None:
    world = started(2)
    world.clock.advance(1.5)
    world.report("payment-0")
    world.clock.advance(1.0)
    world.step()
    silent = {one.name: (one.ready, one.silent_s) for one in world.group.observe().replicas}
    assert silent["payment-0"] == (True, 0)
    assert silent["payment-1"] == (True, pytest.approx(2.6, abs=0.1))
    assert "payment-1 of 2 replicas" in world.problems.current["reports"]
    world.report("payment-1")
    assert not world.problems.current


def late_events(world: GroupWorld) -> dict[str, int | None]:
    observed = world.group.observe()
    return {replica.name: replica.late for replica in observed.replicas} | dict(observed.late_of_removed_replicas)


def test_late_events_are_counted_since_the_previous_observation() -> None:
    world = started(2)
    assert late_events(world) == {"payment-0": None, "payment-1": None}
    seen = []
    for late in (500, 505, 507):
        world.report("payment-0", late=late, busy_us=10**9)
        seen.append(late_events(world)["payment-0"])
    assert seen == [0, 5, 2], "events before the first report do not count"
    assert late_events(world)["payment-0"] is None, "no report since then"


def test_problems_of_replicas_are_shown_while_they_last() -> None:
    world = started(2)
    world.report("payment-1", problems=("partition 3 is not served on: its log was truncated",))
    assert world.problems.current == {"replicas": "payment-1: partition 3 is not served on: its log was truncated"}
    world.report("payment-0", problems=tuple(f"partition {number}" for number in range(9)))
    assert world.problems.current["replicas"].endswith("payment-0: partition 4; …")
    world.report("payment-0")
    world.report("payment-1")
    assert not world.problems.current


def test_a_failed_write_is_retried_and_no_replica_stops_before_it_succeeds() -> None:
    world = started(2)
    world.log.failures = [PlanNotWrittenError("no broker")]
    world.decide(Action.DOWN, ("payment-0",), ALL_ON_0)
    world.report("payment-1", ReplicaState.DRAINED)
    assert len(world.plans()) == 1
    assert world.launcher.newest("payment-1").signals == []
    assert world.problems.current == {"plans": "no broker"}
    world.step(0.5)
    assert world.plans()[-1] == ("down", ("payment-0",), ALL_ON_0)
    world.step()
    assert world.problems.current == {}
