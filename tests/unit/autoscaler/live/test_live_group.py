"""How a decision becomes a plan in force, and what happens when replicas die or fail on the way."""

import pytest
from live_fakes import FakeClock, FakeLauncher, FakeLoads, FakePlanLog, FakeProcess, FakeReports

from autoscaler.estimation import ServiceRate
from autoscaler.live.group import HUNG_AFTER_S, LiveGroup
from autoscaler.live.launcher import PidFile
from autoscaler.live.plan_log import FencedError, PlanNotWrittenError
from autoscaler.live.processes import ProcessScaler
from autoscaler.model import Action, Decision, Plan
from autoscaler.ports import NotReadyError
from contracts.journal import JournalEntry, PlanWritten, ReplicaChanged
from contracts.plan import PlanRecord
from contracts.progress import ReplicaState

PARTITIONS = 4
HALVES = {0: "payment-0", 1: "payment-1", 2: "payment-0", 3: "payment-1"}
ALL_ON_0 = dict.fromkeys(range(PARTITIONS), "payment-0")


class World:
    def __init__(self, in_force: PlanRecord | None = None) -> None:
        self.clock = FakeClock()
        self.launcher = FakeLauncher(self.clock)
        self.reports = FakeReports(self.clock)
        self.log = FakePlanLog(in_force)
        self.loads = FakeLoads(self.clock, PARTITIONS)
        self.journal: list[JournalEntry] = []
        self.scaler = ProcessScaler(self.launcher, self.journal.append, clock=self.clock)
        self.group = LiveGroup(
            loads=self.loads,  # type: ignore[arg-type]
            reports=self.reports,  # type: ignore[arg-type]
            log=self.log,  # type: ignore[arg-type]
            scaler=self.scaler,
            service_rate=ServiceRate(200.0),
            record=self.journal.append,
            partitions=PARTITIONS,
            rebalance_time_s=0.05,
            clock=self.clock,
        )

    def step(self, seconds: float = 0.05) -> None:
        self.clock.advance(seconds)
        self.group.advance()

    def tell(self, name: str, state: ReplicaState = ReplicaState.MEMBER, **more: object) -> None:
        self.reports.tell(name, self.launcher.newest(name), state, **more)  # type: ignore[arg-type]
        self.step()

    def live(self, seconds: float) -> None:
        """Let time pass for healthy members."""
        self.clock.advance(seconds)
        for name in self.scaler.running:
            self.reports.tell(name, self.launcher.newest(name))
        self.group.advance()

    def decide(self, action: Action, replicas: tuple[str, ...], assignment: dict[int, str] | None) -> None:
        self.group.apply(Decision(action, Plan(replicas, assignment), f"because of {action}"))

    def plans(self) -> list[tuple[str, tuple[str, ...], dict[int, str] | None]]:
        written = [entry for entry in self.journal if isinstance(entry, PlanWritten)]
        return [(entry.action, entry.replicas, entry.assignment) for entry in written]

    def changes(self, name: str) -> list[str]:
        return [
            entry.change.value for entry in self.journal if isinstance(entry, ReplicaChanged) and entry.replica == name
        ]


def started(replicas: int = 1) -> World:
    world = World()
    names = tuple(f"payment-{ordinal}" for ordinal in range(replicas))
    world.group.start(names)
    for name in names:
        world.tell(name, ReplicaState.WARM)
    for name in names:
        world.tell(name)
    return world


def test_the_first_plan_waits_for_its_replicas() -> None:
    world = World()
    world.group.start(("payment-0", "payment-1"))
    with pytest.raises(NotReadyError, match="none is in force"):
        world.group.observe()
    world.tell("payment-0", ReplicaState.WARM)
    assert world.plans() == []
    world.tell("payment-1", ReplicaState.WARM)
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
    world.tell("payment-1", ReplicaState.WARM)
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
    world.tell("payment-1", ReplicaState.DRAINED)
    world.launcher.newest("payment-1").finish()
    world.step()
    assert world.changes("payment-1")[-2:] == ["drained", "left"]


def test_a_later_decision_replaces_one_that_was_not_carried_out() -> None:
    world = started()
    world.decide(Action.UP, ("payment-0", "payment-1", "payment-2"), HALVES | {3: "payment-2"})
    world.decide(Action.DOWN, ("payment-0", "payment-1"), HALVES)
    world.step()
    assert "payment-2" not in world.scaler.requested
    world.tell("payment-1", ReplicaState.WARM)
    assert world.plans()[-1] == ("down", ("payment-0", "payment-1"), HALVES)


def test_a_death_is_published_at_once_with_its_eviction_and_again_when_the_replacement_is_warm() -> None:
    world = started(2)
    world.live(60)
    world.launcher.newest("payment-1").finish("killed by SIGKILL")
    world.step()
    assert world.plans()[-1] == ("repair", ("payment-0",), ALL_ON_0)
    evicting = world.log.written[-1]
    assert [eviction.replica for eviction in evicting.evictions] == ["payment-1"]
    assert evicting.reason == "without payment-1: dead; its partitions go to the others"
    world.step(1)
    assert len(world.plans()) == 2, "an eviction is told once"
    world.tell("payment-1", ReplicaState.WARM)
    assert world.plans()[-1] == ("repair", ("payment-0", "payment-1"), HALVES)
    assert world.log.written[-1].evictions == ()
    assert world.log.written[-1].reason == "all 2 replicas are ready again"


def test_when_the_only_replica_dies_its_eviction_comes_with_the_replacement() -> None:
    world = started(1)
    world.live(60)
    world.launcher.newest("payment-0").finish("killed by SIGKILL")
    world.step()
    assert len(world.plans()) == 1, "there is nobody to obey"
    world.step(1)
    world.tell("payment-0", ReplicaState.WARM)
    assert world.plans()[-1] == ("repair", ("payment-0",), ALL_ON_0)
    assert [eviction.replica for eviction in world.log.written[-1].evictions] == ["payment-0"]


def test_a_start_that_fails_does_not_hold_back_those_that_are_ready() -> None:
    world = started()
    thirds = {0: "payment-0", 1: "payment-1", 2: "payment-2", 3: "payment-2"}
    world.decide(Action.UP, ("payment-0", "payment-1", "payment-2"), thirds)
    world.tell("payment-1", ReplicaState.WARM)
    assert len(world.plans()) == 1
    world.launcher.newest("payment-2").finish("exit status 1")
    world.step()
    action, replicas, assignment = world.plans()[-1]
    assert (action, replicas) == ("repair", ("payment-0", "payment-1"))
    assert assignment == {0: "payment-0", 1: "payment-1", 2: "payment-0", 3: "payment-1"}
    assert "not starting" in world.log.written[-1].reason
    world.step(0.5)
    world.tell("payment-2", ReplicaState.WARM)
    assert world.plans()[-1] == ("up", ("payment-0", "payment-1", "payment-2"), thirds)


def test_a_plan_that_is_in_force_already_is_not_written_again() -> None:
    world = started(2)
    world.decide(Action.REASSIGN, ("payment-0", "payment-1"), HALVES)
    world.step(1)
    assert len(world.plans()) == 1


def test_a_write_that_fails_is_repeated_after_a_pause_and_nobody_is_stopped_before() -> None:
    world = started(2)
    world.log.troubles = [PlanNotWrittenError("no broker")]
    world.decide(Action.DOWN, ("payment-0",), ALL_ON_0)
    world.tell("payment-1", ReplicaState.DRAINED)
    assert len(world.plans()) == 1
    assert world.launcher.newest("payment-1").signals == []
    world.step(0.5)
    assert world.plans()[-1] == ("down", ("payment-0",), ALL_ON_0)


def test_a_controller_that_was_replaced_is_told() -> None:
    world = started(2)
    world.log.troubles = [FencedError("another one")]
    with pytest.raises(FencedError):
        world.decide(Action.DOWN, ("payment-0",), ALL_ON_0)


def test_a_restart_keeps_the_plan_and_the_replicas() -> None:
    plan = PlanRecord(epoch=7, at_us=0, replicas=("payment-0", "payment-1"), assignment=HALVES, reason="")
    world = World(plan)
    for ordinal in (0, 1):
        process = FakeProcess(40 + ordinal, 900.0)
        world.launcher.behind.append((f"payment-{ordinal}", PidFile(pid=process.pid, create_time=900.0), process))
        world.reports.tell(f"payment-{ordinal}", process, epoch=7)
    world.group.start(("payment-0",))
    assert world.log.written == []
    assert world.launcher.processes == {}
    assert world.group.observe().assignment == HALVES
    assert world.group.status().epoch == 7


def test_a_restart_replaces_who_died_meanwhile() -> None:
    plan = PlanRecord(epoch=7, at_us=0, replicas=("payment-0", "payment-1"), assignment=HALVES, reason="")
    world = World(plan)
    alive = FakeProcess(40, 900.0)
    world.launcher.behind = [
        ("payment-0", PidFile(pid=40, create_time=900.0), alive),
        ("payment-1", PidFile(pid=41, create_time=900.0), None),
    ]
    world.reports.tell("payment-0", alive, epoch=9)
    world.reports.tell("payment-1", FakeProcess(41, 900.0))
    world.group.start(("payment-0",))
    assert [eviction.replica for eviction in world.log.written[-1].evictions] == ["payment-1"]
    assert world.log.written[-1].epoch == 10, "above every epoch that a replica has read"
    assert "payment-1" in world.launcher.processes


def test_a_plan_for_another_number_of_partitions_is_made_anew() -> None:
    world = World(PlanRecord(epoch=3, at_us=0, replicas=("payment-0",), assignment={0: "payment-0"}, reason=""))
    world.group.start(("payment-0",))
    world.tell("payment-0")
    assert world.plans() == [("start", ("payment-0",), ALL_ON_0)]


def test_owners_of_a_plan_without_assignment_are_what_the_members_report() -> None:
    world = started(2)
    world.decide(Action.UP, ("payment-0", "payment-1"), None)
    world.tell("payment-0", partitions=(0, 1, 2, 3), generation=4)
    world.tell("payment-1", partitions=(2, 3), generation=5)
    assert world.group.observe().assignment == {0: "payment-0", 1: "payment-0", 2: "payment-1", 3: "payment-1"}
    world.tell("payment-0", partitions=(1,), generation=6)
    with pytest.raises(NotReadyError, match="owner of partition 0"):
        world.group.observe()


def test_a_stale_report_makes_no_observation() -> None:
    world = started(2)
    world.clock.advance(1.5)
    world.tell("payment-0")
    world.clock.advance(1.0)
    with pytest.raises(NotReadyError, match="payment-1"):
        world.group.observe()


def test_a_silent_replica_is_taken_for_hung_while_the_brokers_answer() -> None:
    world = started(2)
    world.clock.advance(1)
    for _ in range(int(HUNG_AFTER_S)):
        assert "died" not in world.changes("payment-1")
        world.clock.advance(1)
        world.tell("payment-0")
    world.step()
    assert "died" in world.changes("payment-1")
    assert [eviction.replica for eviction in world.log.written[-1].evictions] == ["payment-1"]


def test_silence_during_an_outage_of_the_brokers_kills_nobody() -> None:
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
