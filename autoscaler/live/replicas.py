"""The replica scaler: makes the replicas that run equal to the replicas that are requested.

A small state machine for each replica. `reconcile` advances all of them and never waits.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from autoscaler.live.launcher import Exit, Instance, Launcher
from contracts.clock import monotonic_s, now_us
from contracts.journal import ReplicaChange, ReplicaChanged
from contracts.plan import Eviction
from contracts.progress import Progress, ReplicaState

STOP_MARGIN_S: Final = 6.0
"""What a replica may need beyond its own drain time: the event in flight, its commit, leaving the group, its exit."""
STOPPING_STATES: Final = (ReplicaState.DRAINING, ReplicaState.STOPPING)
"""States of a replica that was stopped by another than its scaler."""
STATES_WITHOUT_PARTITIONS: Final = (ReplicaState.WARM, ReplicaState.DRAINED, ReplicaState.STOPPING)
"""States of a replica that owns nothing, or is past giving back."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long the scaler waits for what, in seconds."""

    start_s: float = 20.0
    """From the moment a replica runs (a pending one does not) until it is warm; then it is killed and started again."""
    drain_s: float = 12.0
    """From its release until a replica has given everything back; then it is stopped all the same. A little more than
    the group's rebalance time-out."""
    stop_s: float = 14.0
    """From SIGTERM to SIGKILL: the replica's own drain time (8 s) and STOP_MARGIN_S."""
    min_uptime_s: float = 10.0
    """A replica that was ready for so long and ends is replaced at once; one that ends sooner waits its back-off."""
    presumed_warm_s: float = 5.0
    """Where reports cannot be read, a process that has lived for so long is taken to be warm: a plan may name it, for
    a replica that is not in the group yet gets nothing. Twice a slow start."""
    backoff_s: float = 0.5
    """Before the first repetition of a failed start; doubled for each further one."""
    backoff_limit_s: float = 30.0

    def backoff(self, failures: int) -> float:
        """Return how long to wait after so many failures in a row, in seconds."""
        return 0.0 if failures == 0 else min(self.backoff_limit_s, self.backoff_s * 2.0 ** min(failures - 1, 16))


class Phase(StrEnum):
    """Where a replica stands, as its scaler sees it."""

    WAITING = "waiting"
    STARTING = "starting"
    READY = "ready"
    LEAVING = "leaving"
    """Drains although its scaler did not stop it. It will be replaced."""
    DRAINING = "draining"
    STOPPING = "stopping"


@dataclass(slots=True)
class RequestedReplica:
    """One replica that was requested, as its scaler sees it. Changed by the scaler alone."""

    name: str
    phase: Phase
    due_s: float
    """When the next step happens if nothing else does."""
    instance: Instance | None = None
    report: Progress | None = None
    incarnation: str = ""
    """How it reports itself, where that is known: an earlier autoscaler has written it down."""
    previous_incarnation: str = ""
    """Incarnation that had reported under this name when this instance was started: another one, even with its pid."""
    ready_s: float = 0.0
    failures: int = 0
    kill_reason: str = ""
    is_requested_again: bool = False
    is_replacement: bool = False
    """It follows one of this name that has ended unasked."""
    died_s: float | None = None
    """When that one died; None where it stopped in order."""

    @property
    def is_absent(self) -> bool:
        """Whether it cannot serve although it should have been there: it leaves, has ended, or fails to start."""
        begins = self.phase in (Phase.WAITING, Phase.STARTING)
        return self.phase is Phase.LEAVING or (begins and (self.failures > 0 or self.is_replacement))


class ReplicaScaler:
    """Starts, drains, stops, replaces and adopts replicas.

    joins_warm: a replica is in the group, owning nothing, before a plan names it; until then it is not ready.
    obeys_plans: False where the group places its partitions itself; such a replica is stopped without a drain.
    """

    def __init__(
        self,
        launcher: Launcher,
        record: Callable[[ReplicaChanged], None],
        *,
        timeouts: Timeouts | None = None,
        joins_warm: bool = False,
        obeys_plans: bool = True,
        clock: Callable[[], float] = monotonic_s,
    ) -> None:
        self.launcher, self._record, self._clock = launcher, record, clock
        self._timeouts = timeouts or Timeouts()
        self._joins_warm, self._obeys_plans = joins_warm, obeys_plans
        self._replicas: dict[str, RequestedReplica] = {}
        self._reports: Mapping[str, Progress] = {}
        self.evictions: list[Eviction] = []
        """Members known dead. The publisher removes those that it has published."""

    @property
    def requested(self) -> tuple[str, ...]:
        """Wanted replicas, in the order of their requests."""
        going = (Phase.DRAINING, Phase.STOPPING)
        return tuple(
            replica.name
            for replica in self._replicas.values()
            if replica.phase not in going or replica.is_requested_again
        )

    @property
    def running(self) -> tuple[str, ...]:
        """Replicas that run or are being started, those on their way out included."""
        return tuple(replica.name for replica in self._replicas.values() if replica.instance is not None)

    def is_ready(self, name: str) -> bool:
        """Return whether `name` could serve at once, were it given partitions."""
        return name in self._replicas and self._replicas[name].phase is Phase.READY

    def is_absent(self, name: str) -> bool:
        """Return whether `name` cannot serve although it should: it leaves unasked, has ended, or fails to start."""
        return name in self._replicas and self._replicas[name].is_absent

    def died_s(self, name: str) -> float | None:
        """Return when `name` died (by the scaler's clock), while it has not come back; None if it did not."""
        replica = self._replicas.get(name)
        return replica.died_s if replica is not None and replica.is_absent else None

    def adopt(self, reports: Mapping[str, Progress]) -> None:
        """Take over the replicas that an earlier autoscaler left running, and declare dead those that have ended."""
        for left in self.launcher.find_orphans():
            name, instance = left.name, left.instance
            report, ended = reports.get(name), instance.exit()
            if ended is None:
                due_s = self._clock() + self._timeouts.start_s
                self._replicas[name] = RequestedReplica(
                    name, Phase.STARTING, due_s, instance, incarnation=left.incarnation
                )
                self._record_change(name, ReplicaChange.ADOPTED, instance.description)
                continue
            in_order = ended.is_clean and ended.is_status_known
            how = f"{instance.description} ended while no autoscaler watched: {ended.description}"
            self._record_change(
                name, ReplicaChange.LEFT if in_order else ReplicaChange.DIED, self._with_last_log_line(name, how)
            )
            self.launcher.forget(name)
            self._evict(report if report is not None and not in_order and instance.is_source_of(report) else None)
        self.reconcile(reports)

    def request(self, names: Iterable[str]) -> None:
        """Ask for replicas; those that run already, or are being drained, simply stay."""
        for name in names:
            replica = self._replicas.get(name)
            if replica is None:
                self._record_change(name, ReplicaChange.REQUESTED)
                self._replicas[name] = replica = RequestedReplica(name, Phase.WAITING, self._clock())
                self._start(replica)
            elif replica.phase is Phase.DRAINING:
                replica.phase = Phase.READY
            elif replica.phase is Phase.STOPPING:
                replica.is_requested_again = True

    def release(self, name: str) -> None:
        """Remove `name`: once it has left the group, or at a deadline, it is stopped."""
        replica = self._replicas.get(name)
        if replica is not None and replica.phase is Phase.READY and self._obeys_plans:
            replica.phase, replica.due_s = Phase.DRAINING, self._clock() + self._timeouts.drain_s
        elif replica is not None and replica.phase is not Phase.DRAINING:
            self._stop_or_remove(replica)

    def _stop_or_remove(self, replica: RequestedReplica) -> None:
        replica.is_requested_again = False
        if replica.instance is None:
            self._remove(replica, ReplicaChange.LEFT, "had not started")
        elif replica.phase is not Phase.STOPPING:
            self._stop(replica)

    def kill(self, name: str, why: str) -> None:
        """End `name` at once, as if it had died; it is evicted and replaced."""
        replica = self._replicas.get(name)
        if replica is not None and not replica.kill_reason:
            self._kill(replica, why)

    def _kill(self, replica: RequestedReplica, kill_reason: str) -> None:
        replica.due_s, replica.kill_reason = float("inf"), kill_reason
        if replica.instance is not None:
            replica.instance.kill()

    def stop_all(self) -> None:
        """Stop every replica; each gives back what it owns as it leaves."""
        for replica in list(self._replicas.values()):
            self._stop_or_remove(replica)

    def reconcile(self, reports: Mapping[str, Progress], *, reports_unavailable: bool = False) -> None:
        """Take for each replica the step that is due.

        reports: the newest of each replica. unheard: most replicas are silent, so the silence of one is no evidence.
        """
        self._reports, timeouts, now_s = reports, self._timeouts, self._clock()
        for replica in list(self._replicas.values()):
            self._observe_report(replica, reports.get(replica.name))
            ended = replica.instance.exit() if replica.instance is not None else None
            if ended is not None:
                self._handle_exit(replica, ended)
            elif replica.phase is Phase.STARTING and replica.instance is not None and replica.instance.pending_reason:
                replica.due_s = now_s + timeouts.start_s  # that it waits is not its failure
            elif (
                reports_unavailable
                and replica.phase is Phase.STARTING
                and now_s >= replica.due_s - timeouts.start_s + timeouts.presumed_warm_s
            ):
                self._mark_ready(replica, "lives; its reports cannot be read")
            elif now_s >= replica.due_s:
                self._handle_timeout(replica)

    def _observe_report(self, replica: RequestedReplica, report: Progress | None) -> None:
        """Take in a report of the instance; old reports, and those of other instances, are ignored."""
        instance = replica.instance
        if instance is None or report is None or not instance.is_source_of(report):
            return
        if report.incarnation == replica.previous_incarnation or replica.incarnation not in ("", report.incarnation):
            return
        if replica.report is None:
            replica.incarnation = report.incarnation
            with suppress(OSError):  # a full disk: the file of its start suffices to find it again
                self.launcher.save_incarnation(replica.name, report.incarnation)
        replica.report = report
        if replica.phase is Phase.STARTING and not replica.kill_reason and self._is_ready_by(report):
            self._mark_ready(replica, instance.description)
        elif replica.phase is Phase.READY and report.state in STOPPING_STATES:
            replica.phase, replica.due_s = Phase.LEAVING, self._clock() + self._timeouts.stop_s
        elif replica.phase is Phase.DRAINING and report.state in (*STATES_WITHOUT_PARTITIONS, ReplicaState.DRAINING):
            if report.state in STATES_WITHOUT_PARTITIONS:
                self._record_change(replica.name, ReplicaChange.DRAINED)
            self._stop(replica)

    def _mark_ready(self, replica: RequestedReplica, detail: str) -> None:
        replica.phase, replica.due_s, replica.ready_s = Phase.READY, float("inf"), self._clock()
        replica.is_replacement, replica.died_s = False, None
        self._record_change(replica.name, ReplicaChange.READY, detail)

    def _is_ready_by(self, report: Progress) -> bool:
        if report.state is ReplicaState.WARM:
            return not self._joins_warm or bool(report.member_id)
        return report.state not in STOPPING_STATES  # one that was drained joins again when a plan names it

    def _handle_timeout(self, replica: RequestedReplica) -> None:
        match replica.phase:
            case Phase.WAITING:
                self._start(replica)
            case Phase.STARTING:
                self._kill(replica, f"not warm within {self._timeouts.start_s:g} s")
            case Phase.DRAINING:
                self._stop(replica)
            case Phase.LEAVING | Phase.STOPPING:
                self._kill(replica, f"killed: still there {self._timeouts.stop_s:g} s after SIGTERM")

    def _start(self, replica: RequestedReplica) -> None:
        last = self._reports.get(replica.name)
        replica.report, replica.kill_reason, replica.incarnation, replica.previous_incarnation = (
            None,
            "",
            "",
            last.incarnation if last else "",
        )
        try:
            replica.instance = self.launcher.start(replica.name)
        except OSError as failed:
            self._schedule_retry(replica, str(failed))
            return
        replica.phase, replica.due_s = Phase.STARTING, self._clock() + self._timeouts.start_s
        self._record_change(replica.name, ReplicaChange.STARTED, replica.instance.description)

    def _stop(self, replica: RequestedReplica) -> None:
        """Ask it to stop, unless it reports that it stops: a second signal could cut its drain short."""
        replica.phase, replica.due_s = Phase.STOPPING, self._clock() + self._timeouts.stop_s
        if replica.instance is not None and (replica.report is None or replica.report.state not in STOPPING_STATES):
            replica.instance.terminate()

    def _handle_exit(self, replica: RequestedReplica, end: Exit) -> None:
        """An instance has ended: as expected, in a failed start, by death, or because another process stopped it."""
        how = replica.kill_reason or end.description
        if replica.phase is Phase.STARTING:
            self._schedule_retry(replica, how)
        elif replica.phase in (Phase.DRAINING, Phase.STOPPING):
            if replica.kill_reason or not end.is_clean:
                self._evict(replica.report)
            self._remove(replica, ReplicaChange.LEFT, how)
        elif end.is_clean and not replica.kill_reason and (end.is_status_known or replica.phase is Phase.LEAVING):
            self._remove(replica, ReplicaChange.LEFT, f"{how}; its scaler had not asked it to stop")
            self._replace(replica, died_s=None)
        else:
            self._evict(replica.report)
            self._remove(replica, ReplicaChange.DIED, self._with_last_log_line(replica.name, how))
            self._replace(replica, died_s=self._clock())

    def _replace(self, replica: RequestedReplica, died_s: float | None) -> None:
        how = "stopped" if died_s is None else "died"
        self._record_change(replica.name, ReplicaChange.REQUESTED, f"in place of the one that {how}")
        young = self._clock() - replica.ready_s < self._timeouts.min_uptime_s
        failures = replica.failures + 1 if young else 0
        due_s = self._clock() + self._timeouts.backoff(failures)
        self._replicas[replica.name] = RequestedReplica(
            replica.name, Phase.WAITING, due_s, failures=failures, is_replacement=True, died_s=died_s
        )

    def _schedule_retry(self, replica: RequestedReplica, how: str) -> None:
        replica.failures += 1
        wait_s = self._timeouts.backoff(replica.failures)
        replica.instance, replica.phase, replica.due_s = None, Phase.WAITING, self._clock() + wait_s
        detail = f"{self._with_last_log_line(replica.name, how)}; attempt {replica.failures + 1} in {wait_s:g} s"
        self.launcher.forget(replica.name)
        self._record_change(replica.name, ReplicaChange.START_FAILED, detail)

    def _remove(self, replica: RequestedReplica, change: ReplicaChange, detail: str) -> None:
        self._record_change(replica.name, change, detail)
        self.launcher.forget(replica.name)
        del self._replicas[replica.name]
        if replica.is_requested_again:
            self.request([replica.name])

    def _record_change(self, name: str, change: ReplicaChange, detail: str = "") -> None:
        self._record(ReplicaChanged(at_us=now_us(), replica=name, change=change, detail=detail))

    def _evict(self, report: Progress | None) -> None:
        if report is not None and report.member_id:
            about = {"member_id": report.member_id, "incarnation": report.incarnation}
            self.evictions.append(Eviction(replica=report.replica, **about))

    def _with_last_log_line(self, name: str, how: str) -> str:
        last = self.launcher.last_log_line(name)
        return f"{how}; last log line: {last}" if last else how
