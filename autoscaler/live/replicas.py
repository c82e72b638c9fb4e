"""The replica scaler: makes the running replicas equal to the requested ones.

Each replica is a small state machine. `reconcile` advances all of them and never waits.
"""

from collections.abc import Collection, Mapping

from autoscaler.live.launcher import Instance
from autoscaler.live.replica import Phase, RequestedReplica
from autoscaler.live.replica_steps import ReplicaSteps
from contracts.journal import ReplicaChange
from contracts.progress import Progress


class ReplicaScaler(ReplicaSteps):
    """Starts, drains, stops, replaces and adopts replicas."""

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

    def is_absent(self, name: str) -> bool:
        """Return whether `name` cannot serve although it should, see `RequestedReplica.is_absent`."""
        return name in self._replicas and self._replicas[name].is_absent

    def died_s(self, name: str) -> float | None:
        """Return when `name` died (scaler's clock, seconds); None: it did not die, or is ready again."""
        replica = self._replicas.get(name)
        return replica.died_s if replica is not None and replica.is_absent else None

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

    def release(self, name: str) -> None:
        """Drain `name`, then stop it once it owns no partitions, or after `drain_s`."""
        replica = self._replicas.get(name)
        if replica is not None and replica.phase is Phase.READY and self._obeys_plans:
            replica.phase, replica.due_s = Phase.DRAINING, self._clock() + self._timeouts.drain_s
        elif replica is not None and replica.phase is not Phase.DRAINING:
            self._stop_or_remove(replica)

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
