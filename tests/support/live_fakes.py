"""Fakes of the clock, processes, reports and the plan log, which a test controls."""

import signal
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from autoscaler.live.launcher import Exit, Orphan
from autoscaler.live.plan_log import FencedError, PlanNotWrittenError
from autoscaler.live.progress_reader import LateEventCounter
from autoscaler.model import PartitionLoad
from autoscaler.ports import NotReadyError
from contracts.plan import Eviction, PlanRecord
from contracts.progress import Progress, Rebalance, ReplicaState


@dataclass
class FakeClock:
    now_s: float = 1000.0

    def __call__(self) -> float:
        return self.now_s

    def advance(self, seconds: float) -> None:
        self.now_s += seconds


@dataclass
class FakeProcess:
    pid: int
    pending_reason: str = ""
    ended: Exit | None = None
    signals: list[signal.Signals] = field(default_factory=list)

    def exit(self) -> Exit | None:
        return self.ended

    @property
    def description(self) -> str:
        return f"pid {self.pid}"

    def is_source_of(self, report: Progress) -> bool:
        return report.pid == self.pid

    def terminate(self) -> None:
        self.signals.append(signal.SIGTERM)

    def kill(self) -> None:
        self.signals.append(signal.SIGKILL)
        self.ended = Exit("killed by SIGKILL", is_clean=False)

    def finish(self, description: str = "exit status 0") -> None:
        self.ended = Exit(description, is_clean=description == "exit status 0")


class FakeLauncher:
    """Records every process that it started. `processes[name][-1]` is the newest."""

    def __init__(self, clock: FakeClock) -> None:
        self._clock = clock
        self.processes: dict[str, list[FakeProcess]] = {}
        self.remembered: dict[str, str] = {}
        """Name → incarnation of each replica that was started and not forgotten."""
        self.behind: list[Orphan] = []
        self.problem = ""
        self.wanted = 0
        self.refuses: str | None = None
        self.log_line = ""
        self._pids = iter(range(100, 10_000))

    def start(self, name: str) -> FakeProcess:
        if self.refuses is not None:
            raise OSError(self.refuses)
        process = FakeProcess(next(self._pids))
        self.processes.setdefault(name, []).append(process)
        self.save_incarnation(name, "")
        return process

    def save_incarnation(self, name: str, incarnation: str) -> None:
        self.remembered[name] = incarnation

    def forget(self, name: str) -> None:
        self.remembered.pop(name, None)

    def find_orphans(self) -> Iterable[Orphan]:
        return iter(self.behind)

    def last_log_line(self, name: str) -> str:
        return self.log_line

    def close(self) -> None: ...

    def newest(self, name: str) -> FakeProcess:
        return self.processes[name][-1]


class FakeReports:
    """Replaces ProgressReader."""

    def __init__(self, clock: FakeClock) -> None:
        self._clock = clock
        self.reports: dict[str, Progress] = {}
        self.arrived_s: dict[str, float] = {}
        self.rebalances: list[Rebalance] = []
        self.unreadable = ""
        self._late_events = LateEventCounter(clock)

    def poll(self) -> Mapping[str, Progress]:
        return self.reports

    def take_rebalances(self) -> tuple[Rebalance, ...]:
        taken, self.rebalances = tuple(self.rebalances), []
        return taken

    def take_late_events(self) -> dict[str, int]:
        return self._late_events.take()

    def newest(self, replica: str) -> Progress | None:
        return self.reports.get(replica)

    def age_s(self, replica: str) -> float:
        return self._clock() - self.arrived_s[replica] if replica in self.arrived_s else float("inf")

    def recent(self) -> list[Progress]:
        return [report for name, report in self.reports.items() if self.age_s(name) <= 2]

    def report(
        self,
        replica: str,
        process: FakeProcess,
        state: ReplicaState = ReplicaState.MEMBER,
        *,
        partitions: tuple[int, ...] = (),
        epoch: int = 0,
        assigned_epoch: int | None = None,
        generation: int = 1,
        in_group: bool | None = None,
        processed: int = 0,
        busy_us: int = 0,
        late: int | None = None,
        latencies: tuple[int, ...] = (),
        problems: tuple[str, ...] = (),
    ) -> None:
        """in_group: whether it has a member id; by default only a member and one that asks to be drained do."""
        member = state in (ReplicaState.MEMBER, ReplicaState.DRAINING) if in_group is None else in_group
        self.reports[replica] = Progress(
            replica=replica, incarnation=f"life-{process.pid}", pid=process.pid,
            member_id=f"member-{process.pid}" if member else "", generation=generation if member else -1,
            epoch=epoch, assigned_epoch=epoch if assigned_epoch is None else assigned_epoch, state=state,
            partitions=partitions, positions={}, processed=processed, busy_us=busy_us, late=late, rebalances=0,
            latencies=latencies, at_us=0, problems=problems,
        )  # fmt: skip
        self.arrived_s[replica] = self._clock()
        self._late_events.record_report(self.reports[replica])


class FakePlanLog:
    """Replaces PlanLog. Each of the next writes raises one of `failures`."""

    def __init__(self, newest: PlanRecord | None = None) -> None:
        self.newest = newest
        self.written: list[PlanRecord] = []
        self.failures: list[PlanNotWrittenError | FencedError] = []
        self.epoch = 0 if newest is None else newest.epoch
        self.unusable = ""

    def stay_above(self, epoch: int) -> None:
        self.epoch = max(self.epoch, epoch)

    def write(
        self,
        replicas: tuple[str, ...],
        assignment: Mapping[int, str] | None,
        reason: str,
        evictions: tuple[Eviction, ...] = (),
        grace_s: float = 0.0,
        *,
        wanted: int = 0,
    ) -> PlanRecord:
        if self.failures:
            raise self.failures.pop(0)
        self.epoch += 1
        self.newest = PlanRecord(
            epoch=self.epoch, at_us=0, replicas=replicas,
            assignment=None if assignment is None else dict(assignment), reason=reason, evictions=evictions,
            grace_s=grace_s, wanted=wanted,
        )  # fmt: skip
        self.written.append(self.newest)
        return self.newest


class FakeLoads:
    """Replaces LoadReader."""

    def __init__(self, clock: FakeClock, partitions: int) -> None:
        self._clock = clock
        self.loads = tuple(PartitionLoad(number, 10.0, 0) for number in range(partitions))
        self.missing: str | None = None
        self.missing_data = self.hidden = ""
        self.advancing: set[int] = set()

    @property
    def partitions(self) -> int:
        return len(self.loads)

    def count_partitions(self) -> int:
        return self.partitions

    def rates(self) -> Mapping[int, float]:
        return {load.partition: load.arrival_rate for load in self.loads if load.arrival_rate > 0}

    def has_advanced(self, partition: int, within_s: float) -> bool:
        return partition in self.advancing

    def sample(self, now_s: float) -> None:
        self.sampled_s = now_s

    def recent(self) -> None:
        return None

    def read(self) -> tuple[float, tuple[PartitionLoad, ...]]:
        if self.missing is not None:
            raise NotReadyError(self.missing)
        return self._clock(), self.loads
