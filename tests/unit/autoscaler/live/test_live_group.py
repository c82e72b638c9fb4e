"""How a decision becomes a plan in force."""

import pytest
from live_worlds import ALL_ON_0, HALVES, GroupWorld, started

from autoscaler.live.plan_log import FencedError, PlanNotWrittenError
from autoscaler.model import Action
from autoscaler.ports import NotReadyError
from contracts.journal import PlanWritten
from contracts.progress import ReplicaState


def test_the_first_plan_waits_for_its_replicas() -> None:
    world = GroupWorld()
    world.group.start(("payment-0", "payment-1"))
    with pytest.raises(NotReadyError, match="plan"):
        world.group.observe()
    world.report("payment-0", ReplicaState.WARM)
    assert world.plans() == []
    world.report("payment-1", ReplicaState.WARM)
    assert world.plans() == [("start", ("payment-0", "payment-1"), HALVES)]
    assert world.group.observe().assignment == HALVES


def test_scaling_up_publishes_only_once_the_new_replica_could_join() -> None:
    world = started()
    world.decide(Action.UP, ("payment-0", "payment-1"), HALVES)
    assert len(world.plans()) == 1
    observation = world.group.observe()
    assert [(one.name, one.ready) for one in observation.replicas] == [("payment-0", True), ("payment-1", False)]
    assert observation.assignment == HALVES, "what is on its way counts as decided"
    world.step(1)
    assert len(world.plans()) == 1
    world.report("payment-1", ReplicaState.WARM)
    assert world.plans()[-1] == ("up", ("payment-0", "payment-1"), HALVES)
    assert world.log.written[-1].reason == "because of up"
    (plan,) = [entry for entry in world.journal if isinstance(entry, PlanWritten)][1:]
    assert (plan.epoch, plan.moved) == (2, 2)


def test_scaling_down_publishes_at_once_and_stops_the_victim_when_it_has_drained() -> None:
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


def test_who_is_silent_is_marked_and_nobody_waits_for_it() -> None:
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


def late_seen(world: GroupWorld) -> dict[str, int | None]:
    observed = world.group.observe()
    return {one.name: one.late for one in observed.replicas} | dict(observed.late_of_removed_replicas)


def test_late_events_are_told_since_the_observation_before() -> None:
    world = started(2)
    assert late_seen(world) == {"payment-0": None, "payment-1": None}
    seen = []
    for late in (500, 505, 507):
        world.report("payment-0", late=late, busy_us=10**9)
        seen.append(late_seen(world)["payment-0"])
    assert seen == [0, 5, 2], "where its counter stood when it was heard first is nobody's"
    assert late_seen(world)["payment-0"] is None, "it has said nothing since"


def test_what_replicas_say_that_is_wrong_with_them_is_said_while_it_lasts() -> None:
    world = started(2)
    world.report("payment-1", problems=("partition 3 is not served on: its log was truncated",))
    assert world.problems.current == {"replicas": "payment-1: partition 3 is not served on: its log was truncated"}
    world.report("payment-0", problems=tuple(f"partition {number}" for number in range(9)))
    assert world.problems.current["replicas"].endswith("payment-0: partition 4; …")
    world.report("payment-0")
    world.report("payment-1")
    assert not world.problems.current


def test_a_controller_that_was_replaced_is_told() -> None:
    world = started(2)
    world.log.failures = [FencedError("another one")]
    with pytest.raises(FencedError):
        world.decide(Action.DOWN, ("payment-0",), ALL_ON_0)


def test_a_write_that_fails_is_repeated_after_a_pause_and_nobody_is_stopped_before() -> None:
    world = started(2)
    world.log.failures = [PlanNotWrittenError("no broker")]
    world.decide(Action.DOWN, ("payment-0",), ALL_ON_0)
    world.report("payment-1", ReplicaState.DRAINED)
    assert len(world.plans()) == 1
    assert world.launcher.newest("payment-1").signals == []
    world.step(0.5)
    assert world.plans()[-1] == ("down", ("payment-0",), ALL_ON_0)
