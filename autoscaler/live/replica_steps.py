"""The steps of a replica: its start, its reports, time limits, its stop, its exit and its replacement."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress

from autoscaler.live.launcher import Exit, Instance, Launcher
from autoscaler.live.replica import STATES_WITHOUT_PARTITIONS, STOPPING_STATES, Phase, RequestedReplica, Timeouts
from contracts.clock import monotonic_s, now_us
from contracts.journal import ReplicaChange, ReplicaChanged
from contracts.plan import Eviction
from contracts.progress import Progress, ReplicaState


class ReplicaSteps:
    """Takes replicas from phase to phase. ReplicaScaler decides which and when.

    joins_warm: replicas join the group before a plan names them. They are ready only as members of the group.
    obeys_plans: False if the group assigns its partitions itself. Then a replica is stopped without a drain.
    is_source: returns whether a report is about an instance: the instance wrote it, or it was made for it.
    """

    def __init__(
        self,
        launcher: Launcher,
        record: Callable[[ReplicaChanged], None],
        *,
        timeouts: Timeouts | None = None,
        joins_warm: bool = False,
        obeys_plans: bool = True,
        is_source: Callable[[Instance, Progress], bool] = lambda instance, report: instance.is_source_of(report),
        clock: Callable[[], float] = monotonic_s,
    ) -> None:
        self.launcher, self._record, self._clock = launcher, record, clock
        self._timeouts = timeouts or Timeouts()
        self._joins_warm, self._obeys_plans, self._is_source = joins_warm, obeys_plans, is_source
        self._replicas: dict[str, RequestedReplica] = {}
        self._reports: Mapping[str, Progress] = {}
        self.evictions: list[Eviction] = []
        """Members that are known to be dead. The publisher removes those that it has published."""

    def is_source_of(self, report: Progress) -> bool:
        """Return whether the running instance of this name wrote the report, and not an earlier or unknown process."""
        replica = self._replicas.get(report.replica)
        if replica is None or replica.instance is None or report.incarnation == replica.previous_incarnation:
            return False
        return replica.incarnation in ("", report.incarnation) and self._is_source(replica.instance, report)

    def request(self, names: Iterable[str]) -> None:
        """Request replicas. A draining replica stays. A stopping replica is started again after its exit."""
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

    def kill(self, name: str, why: str) -> None:
        """Kill `name`. It is evicted from the group and replaced."""
        if name in self._replicas and not self._replicas[name].kill_reason:
            self._kill(self._replicas[name], why)

    def _kill(self, replica: RequestedReplica, kill_reason: str) -> None:
        replica.due_s, replica.kill_reason = float("inf"), kill_reason
        if replica.instance is not None:
            replica.instance.kill()

    def _stop_or_remove(self, replica: RequestedReplica) -> None:
        replica.is_requested_again = False
        if replica.instance is None:
            self._remove(replica, ReplicaChange.LEFT, "it had not started")
        elif replica.phase is not Phase.STOPPING:
            self._stop(replica)

    def _observe_report(self, replica: RequestedReplica, report: Progress | None) -> None:
        instance = replica.instance
        if instance is None or report is None or report.replica != replica.name or not self.is_source_of(report):
            return
        if replica.report is None:
            replica.incarnation = report.incarnation
            with suppress(OSError):  # disk full: the file written at its start is enough to find it again
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
        return report.state not in STOPPING_STATES  # a drained replica joins again when a plan names it

    def _handle_timeout(self, replica: RequestedReplica) -> None:
        match replica.phase:
            case Phase.WAITING:
                self._start(replica)
            case Phase.STARTING:
                self._kill(replica, f"not warm within {self._timeouts.start_s:g} s")
            case Phase.DRAINING:
                self._stop(replica)
            case Phase.LEAVING | Phase.STOPPING:
                self._kill(replica, f"killed: still running {self._timeouts.stop_s:g} s after SIGTERM")

    def _start(self, replica: RequestedReplica) -> None:
        last = self._reports.get(replica.name)
        replica.report, replica.kill_reason, replica.incarnation = None, "", ""
        replica.previous_incarnation = last.incarnation if last else ""
        try:
            replica.instance = self.launcher.start(replica.name)
        except OSError as failed:
            self._schedule_retry(replica, str(failed))
            return
        replica.phase, replica.due_s = Phase.STARTING, self._clock() + self._timeouts.start_s
        self._record_change(replica.name, ReplicaChange.STARTED, replica.instance.description)

    def _stop(self, replica: RequestedReplica) -> None:
        replica.phase, replica.due_s = Phase.STOPPING, self._clock() + self._timeouts.stop_s
        is_stopping = replica.report is not None and replica.report.state in STOPPING_STATES
        if replica.instance is not None and not is_stopping:  # a second SIGTERM could cut its drain short
            replica.instance.terminate()

    def _handle_exit(self, replica: RequestedReplica, end: Exit) -> None:
        reason = replica.kill_reason or end.description
        if replica.phase is Phase.STARTING:
            self._schedule_retry(replica, reason)
        elif replica.phase in (Phase.DRAINING, Phase.STOPPING):
            if replica.kill_reason or not end.is_clean:
                self._evict(replica.report)
            self._remove(replica, ReplicaChange.LEFT, reason)
        elif end.is_clean and not replica.kill_reason and (end.is_status_known or replica.phase is Phase.LEAVING):
            self._remove(replica, ReplicaChange.LEFT, f"{reason}; the autoscaler did not stop it")
            self._replace(replica, died_s=None)
        else:
            self._evict(replica.report)
            self._remove(replica, ReplicaChange.DIED, self._with_last_log_line(replica.name, reason))
            self._replace(replica, died_s=self._clock())

    def _replace(self, replica: RequestedReplica, died_s: float | None) -> None:
        reason = "stopped" if died_s is None else "died"
        self._record_change(replica.name, ReplicaChange.REQUESTED, f"replaces the instance that {reason}")
        failed_early = self._clock() - replica.ready_s < self._timeouts.min_uptime_s
        failures = replica.failures + 1 if failed_early else 0
        due_s = self._clock() + self._timeouts.backoff(failures)
        self._replicas[replica.name] = RequestedReplica(
            replica.name, Phase.WAITING, due_s, failures=failures, is_replacement=True, died_s=died_s
        )

    def _schedule_retry(self, replica: RequestedReplica, reason: str) -> None:
        replica.failures += 1
        wait_s = self._timeouts.backoff(replica.failures)
        replica.instance, replica.phase, replica.due_s = None, Phase.WAITING, self._clock() + wait_s
        detail = f"{self._with_last_log_line(replica.name, reason)}; attempt {replica.failures + 1} in {wait_s:g} s"
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
            eviction = Eviction(replica=report.replica, member_id=report.member_id, incarnation=report.incarnation)
            self.evictions.append(eviction)

    def _with_last_log_line(self, name: str, reason: str) -> str:
        last = self.launcher.last_log_line(name)
        return f"{reason}; last log line: {last}" if last else reason
