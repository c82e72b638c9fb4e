"""The scaler and the group with fakes, for tests that are written as timelines."""

import math
from dataclasses import replace

from live_fakes import FakeClock, FakeLauncher, FakeLoads, FakePlanLog, FakeProcess, FakeReports

from autoscaler.estimation.rebalance_time import RebalanceTime
from autoscaler.estimation.service_rates import ServiceRates
from autoscaler.live.group import LiveGroup
from autoscaler.live.problems import Problems
from autoscaler.live.progress_reader import PlanAdoption
from autoscaler.live.publisher import Publisher
from autoscaler.live.replicas import ReplicaScaler
from autoscaler.live.settings import AutoscalerSettings
from autoscaler.model import Action, Decision, Plan
from contracts.journal import JournalEntry, PlanWritten, ReplicaChange, ReplicaChanged
from contracts.plan import PlanRecord
from contracts.progress import ReplicaState
from contracts.rebalance_protocol import RebalanceProtocol

PARTITIONS = 4
HALVES = {0: "payment-0", 1: "payment-1", 2: "payment-0", 3: "payment-1"}
ALL_ON_0 = dict.fromkeys(range(PARTITIONS), "payment-0")


class GroupWorld:
    """A LiveGroup and its scaler, with everything else faked."""

    def __init__(
        self,
        in_force: PlanRecord | None = None,
        *,
        grace_s: float = 0.0,
        taken_within_s: float = math.inf,
        learn: bool = True,
        joins_warm: bool = False,
        places_itself: bool = False,
        stops_all: bool = False,
    ) -> None:
        self.clock = FakeClock()
        self.launcher = FakeLauncher(self.clock)
        self.reports = FakeReports(self.clock)
        self.log = FakePlanLog(in_force)
        self.loads = FakeLoads(self.clock, PARTITIONS)
        self.journal: list[JournalEntry] = []
        self.warnings: list[str] = []
        self.log_lines: list[str] = []
        self.problems = Problems(self.log_lines.append)
        self.took_s: list[float] = []
        self.scaler = ReplicaScaler(
            self.launcher,
            self.journal.append,
            joins_warm=joins_warm,
            obeys_plans=not places_itself,
            clock=self.clock,
        )
        plain = AutoscalerSettings(policy="static", state_dir="unused", overhead_s=0, startup_s=0, commit_age_s=0)
        self.group = LiveGroup(
            replace(
                plain,
                runtime="kip848" if places_itself else "",
                rebalance_protocol=RebalanceProtocol.EAGER if stops_all else RebalanceProtocol.INCREMENTAL,
            ),
            loads=self.loads,  # type: ignore[arg-type]
            reports=self.reports,  # type: ignore[arg-type]
            publisher=Publisher(
                self.log,  # type: ignore[arg-type]
                self.scaler,
                self.journal.append,
                self.clock,
                adoption=PlanAdoption(taken_within_s, self.clock, self.took_s.append),
                report_problem=lambda why: self.problems.report("plans", why),
                grace_s=grace_s,
            ),
            scaler=self.scaler,
            service_rates=ServiceRates(200.0),
            rebalance_time=RebalanceTime(0.05, learn=learn, latency_target_s=0.5, warn=self.warnings.append),
            report_problem=self.problems.report,
            clock=self.clock,
        )

    def step(self, seconds: float = 0.05) -> None:
        self.clock.advance(seconds)
        self.group.advance()

    def report(self, name: str, state: ReplicaState = ReplicaState.MEMBER, **more: object) -> None:
        self.reports.report(name, self.launcher.newest(name), state, **more)  # type: ignore[arg-type]
        self.step()

    def live(self, seconds: float) -> None:
        """Advance the time. All members stay healthy."""
        self.clock.advance(seconds)
        for name in self.scaler.instances:
            self.reports.report(name, self.launcher.newest(name))
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


def started(replicas: int = 1, **how: object) -> GroupWorld:
    """Return a group whose first plan is in force."""
    world = GroupWorld(**how)  # type: ignore[arg-type]
    names = tuple(f"payment-{ordinal}" for ordinal in range(replicas))
    world.group.start(names)
    for name in names:
        world.report(name, ReplicaState.WARM)
    for name in names:
        world.report(name)
    return world


class ScalerWorld:
    """A scaler whose processes and reports are faked."""

    def __init__(self, *, joins_warm: bool = False, obeys_plans: bool = True) -> None:
        self.clock = FakeClock()
        self.launcher = FakeLauncher(self.clock)
        self.reports = FakeReports(self.clock)
        self.journal: list[ReplicaChanged] = []
        self.scaler = ReplicaScaler(
            self.launcher, self.journal.append, joins_warm=joins_warm, obeys_plans=obeys_plans, clock=self.clock
        )

    def step(self, seconds: float = 0.0) -> None:
        self.clock.advance(seconds)
        self.scaler.reconcile(self.reports.reports)

    def warm(self, name: str) -> FakeProcess:
        self.reports.report(name, self.launcher.newest(name), ReplicaState.WARM)
        self.step()
        return self.launcher.newest(name)

    def member(self, name: str) -> FakeProcess:
        self.reports.report(name, self.launcher.newest(name), ReplicaState.MEMBER)
        self.step()
        return self.launcher.newest(name)

    def changes(self, name: str = "payment-0") -> list[str]:
        return [entry.change.value for entry in self.journal if entry.replica == name]

    def detail(self, change: ReplicaChange) -> str:
        return [entry.detail for entry in self.journal if entry.change is change][-1]
