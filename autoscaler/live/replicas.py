"""The replica scaler: makes the running replicas equal to the requested ones.

Each replica is a small state machine. `reconcile` advances all of them and never waits.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress

from autoscaler.live.launcher import Exit, Instance, Launcher
from autoscaler.live.replica import STATES_WITHOUT_PARTITIONS, STOPPING_STATES, Phase, RequestedReplica, Timeouts
from contracts.clock import monotonic_s, now_us
from contracts.journal import ReplicaChange, ReplicaChanged
from contracts.plan import Eviction
from contracts.progress import Progress, ReplicaState


class ReplicaScaler:
    """Starts, drains, stops, replaces and adopts replicas.

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

    @property
    def requested(self) -> tuple[str, ...]:
        """Requested replicas, in the order of their requests."""
        leaving, replicas = (Phase.DRAINING, Phase.STOPPING), self._replicas.values()
        return tuple(replica.name for replica in replicas if replica.phase not in leaving or replica.is_requested_again)

    @property
    def ready(self) -> tuple[str, ...]:
        """Requested replicas that could serve partitions at once."""
        return tuple(name for name, replica in self._replicas.items() if replica.phase is Phase.READY)

    @property
    def instances(self) -> dict[str, Instance]:
        """Running replica → its instance, also while it starts or stops."""
        return {name: replica.instance for name, replica in self._replicas.items() if replica.instance is not None}

    def is_ready(self, name: str) -> bool:
        """Return whether `name` could serve partitions at once."""
        return name in self._replicas and self._replicas[name].phase is Phase.READY

    def starting_s(self, name: str) -> float:
        """Return the time from the request of `name` until it was ready, or until now, seconds; 0: unknown."""
        replica = self._replicas.get(name)
        if replica is None or replica.requested_s is None:
            return 0.0
        return (replica.ready_s or self._clock()) - replica.requested_s

    def is_absent(self, name: str) -> bool:
        """Return whether `name` cannot serve although it should, see `RequestedReplica.is_absent`."""
        return name in self._replicas and self._replicas[name].is_absent

    def died_s(self, name: str) -> float | None:
        """Return when `name` died (scaler's clock, seconds); None: it did not die, or is ready again."""
        replica = self._replicas.get(name)
        return replica.died_s if replica is not None and replica.is_absent else None

    def is_source_of(self, report: Progress) -> bool:
        """Return whether the running instance of this name wrote the report, and not an earlier or unknown process."""
        replica = self._replicas.get(report.replica)
        if replica is None or replica.instance is None or report.incarnation == replica.previous_incarnation:
            return False
        return replica.incarnation in ("", report.incarnation) and self._is_source(replica.instance, report)

    @property
    def overdue(self) -> int:
        """Number of running replicas that have not reported within `Timeouts.start_s`."""
        now_s, starting = self._clock(), (r for r in self._replicas.values() if r.phase is Phase.STARTING)
        return sum(now_s >= r.due_s for r in starting if r.instance and not r.instance.pending_reason)

    def adopt(self, reports: Mapping[str, Progress], named: Collection[str] = ()) -> None:
        """Take over replicas left running, and evict dead ones. Those `named` by a plan are ready without a report."""
        for orphan in self.launcher.find_orphans():
            name, instance = orphan.name, orphan.instance
            report, ended = reports.get(name), instance.exit()
            if ended is None:
                due_s, known = self._clock() + self._timeouts.start_s, orphan.incarnation
                self._replicas[name] = RequestedReplica(name, Phase.STARTING, due_s, instance, incarnation=known)
                self._record_change(name, ReplicaChange.ADOPTED, instance.description)
                if name in named and not instance.pending_reason and not (report and self._is_source(instance, report)):
                    self._mark_ready(self._replicas[name], "the plan in force names it; it has not reported yet")
                continue
            reason = f"{instance.description} exited while no autoscaler ran: {ended.description}"
            left_cleanly = ended.is_clean and ended.is_status_known
            change = ReplicaChange.LEFT if left_cleanly else ReplicaChange.DIED
            self._record_change(name, change, self._with_last_log_line(name, reason))
            self.launcher.forget(name)
            if report is not None and not left_cleanly and self._is_source(instance, report):
                self._evict(report)
        self.reconcile(reports)

    def request(self, names: Iterable[str]) -> None:
        """Request replicas. A draining replica stays. A stopping replica is started again after its exit."""
        for name in names:
            replica = self._replicas.get(name)
            if replica is None:
                self._record_change(name, ReplicaChange.REQUESTED)
                now_s = self._clock()
                self._replicas[name] = replica = RequestedReplica(name, Phase.WAITING, now_s, requested_s=now_s)
                self._start(replica)
            elif replica.phase is Phase.DRAINING:
                replica.phase = Phase.READY
            elif replica.phase is Phase.STOPPING:
                replica.is_requested_again = True

    def release(self, name: str) -> None:
        """Drain `name`, then stop it once it owns no partitions, or after `drain_s`."""
        replica = self._replicas.get(name)
        if replica is not None and replica.phase is Phase.READY and self._obeys_plans:
            replica.phase, replica.due_s = Phase.DRAINING, self._clock() + self._timeouts.drain_s
        elif replica is not None and replica.phase is not Phase.DRAINING:
            self._stop_or_remove(replica)

    def _stop_or_remove(self, replica: RequestedReplica) -> None:
        replica.is_requested_again = False
        if replica.instance is None:
            self._remove(replica, ReplicaChange.LEFT, "it had not started")
        elif replica.phase is not Phase.STOPPING:
            self._stop(replica)

    def kill(self, name: str, why: str) -> None:
        """Kill `name`. It is evicted from the group and replaced."""
        if name in self._replicas and not self._replicas[name].kill_reason:
            self._kill(self._replicas[name], why)

    def _kill(self, replica: RequestedReplica, kill_reason: str) -> None:
        replica.due_s, replica.kill_reason = float("inf"), kill_reason
        if replica.instance is not None:
            replica.instance.kill()

    def stop_all(self) -> None:
        """Stop every replica. Each commits and leaves the group."""
        for replica in list(self._replicas.values()):
            self._stop_or_remove(replica)

    def reconcile(self, reports: Mapping[str, Progress], *, reports_unavailable: bool = False) -> None:
        """Take the next step of each replica, if one is due.

        reports: the newest by replica. reports_unavailable: most are silent; a start then succeeds without a report.
        """
        self._reports, start_s, now_s = reports, self._timeouts.start_s, self._clock()
        for replica in list(self._replicas.values()):
            self._observe_report(replica, reports.get(replica.name))
            is_starting, presumed_warm_s = replica.phase is Phase.STARTING, self._timeouts.presumed_warm_s
            ended = replica.instance.exit() if replica.instance is not None else None
            if ended is not None:
                self._handle_exit(replica, ended)
            elif is_starting and replica.instance is not None and replica.instance.pending_reason:
                replica.due_s = now_s + start_s  # a missing image or node is not a failure of the replica
            elif is_starting and reports_unavailable and now_s >= replica.due_s - start_s + presumed_warm_s:
                self._mark_ready(replica, f"runs for {presumed_warm_s:g} s; its reports cannot be read")
            elif now_s >= replica.due_s:
                self._handle_timeout(replica)

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
        now_s, name = self._clock(), replica.name
        due_s = now_s + self._timeouts.backoff(failures)
        self._replicas[name] = RequestedReplica(
            name, Phase.WAITING, due_s, requested_s=now_s, failures=failures, is_replacement=True, died_s=died_s
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
