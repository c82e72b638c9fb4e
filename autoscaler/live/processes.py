"""The process scaler: makes the replicas that run equal to the replicas that are requested.

A small state machine for each replica. `reconcile` advances all of them and never waits.
"""

import signal
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from autoscaler.live.launcher import Exit, Launcher
from autoscaler.live.replica_life import Patience, Phase, Requested
from contracts.journal import ReplicaChange, ReplicaChanged
from contracts.plan import Eviction
from contracts.progress import Progress, ReplicaState

_CLOCK_GRAIN_S: Final = 1.0
"""The system gives the start of a process in ticks since boot, which may differ from the clock of its reports."""


class ProcessScaler:
    """Starts, drains, stops, replaces and adopts replicas."""

    def __init__(
        self,
        launcher: Launcher,
        record: Callable[[ReplicaChanged], None],
        *,
        patience: Patience | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._launcher = launcher
        self._record = record
        self._patience = patience or Patience()
        self._clock = clock
        self._replicas: dict[str, Requested] = {}
        self.evictions: list[Eviction] = []
        """Members known dead. Whoever publishes them removes them."""

    @property
    def requested(self) -> tuple[str, ...]:
        """Replicas that shall run, in the order of their requests."""
        leaving = (Phase.DRAINING, Phase.STOPPING)
        return tuple(one.name for one in self._replicas.values() if one.phase not in leaving or one.wanted_again)

    @property
    def running(self) -> tuple[str, ...]:
        """Replicas that have a process, those on their way out included."""
        return tuple(one.name for one in self._replicas.values() if one.process is not None)

    def ready(self, name: str) -> bool:
        """Return whether `name` could serve at once, were it given partitions."""
        return name in self._replicas and self._replicas[name].phase is Phase.READY

    def failing(self, name: str) -> bool:
        """Return whether the last attempt to run `name` failed."""
        one = self._replicas.get(name)
        return one is not None and one.failures > 0 and one.phase in (Phase.WAITING, Phase.STARTING)

    def adopt(self, reports: Mapping[str, Progress]) -> None:
        """Take over what an earlier autoscaler left running, and declare dead what is not there any more."""
        for name, entry, process in self._launcher.left_behind():
            report = reports.get(name)
            if process is not None:
                self._replicas[name] = Requested(name, Phase.STARTING, self._clock() + self._patience.start_s, process)
                self._tell(name, ReplicaChange.ADOPTED, f"pid {entry.pid}")
                continue
            self._launcher.forget(name)
            self._tell(name, ReplicaChange.DIED, f"pid {entry.pid} ended while no autoscaler watched")
            self._evict(report if report is not None and report.pid == entry.pid else None)
        self.reconcile(reports)

    def request(self, names: Iterable[str]) -> None:
        """Ask for replicas; those that run already, or are being drained, simply stay."""
        for name in names:
            one = self._replicas.get(name)
            if one is None:
                self._tell(name, ReplicaChange.REQUESTED)
                self._replicas[name] = one = Requested(name, Phase.WAITING, self._clock())
                self._start(one)
            elif one.phase is Phase.DRAINING:
                one.phase = Phase.READY
            elif one.phase is Phase.STOPPING:
                one.wanted_again = True

    def release(self, name: str) -> None:
        """Let `name` go: once it has left the group, or at a deadline, its process is stopped."""
        one = self._replicas.get(name)
        if one is None:
            return
        one.wanted_again = False
        if one.process is None:
            self._gone(one, ReplicaChange.LEFT, "had not started")
        elif one.phase is Phase.STARTING:
            self._stop(one)
        elif one.phase is Phase.READY:
            one.phase, one.due_s = Phase.DRAINING, self._clock() + self._patience.drain_s

    def kill(self, name: str, why: str) -> None:
        """End `name` at once, as if it had died; it is evicted and replaced."""
        one = self._replicas.get(name)
        if one is not None and not one.verdict:
            one.verdict = why
            self._signal(one, signal.SIGKILL)

    def stop_all(self) -> None:
        """Stop every replica; each gives back what it owns as it leaves."""
        for one in list(self._replicas.values()):
            one.wanted_again = False
            if one.process is None:
                self._gone(one, ReplicaChange.LEFT, "had not started")
            elif one.phase is not Phase.STOPPING:
                self._stop(one)

    def reconcile(self, reports: Mapping[str, Progress]) -> None:
        """Take for each replica the step that is due. reports: the newest of each replica."""
        for one in list(self._replicas.values()):
            self._notice(one, reports.get(one.name))
            ended = one.process.exit() if one.process is not None else None
            if ended is not None:
                self._ended(one, ended)
            elif one.phase is Phase.DRAINING and one.report and one.report.state is not ReplicaState.MEMBER:
                self._tell(one.name, ReplicaChange.DRAINED)
                self._stop(one)
            elif self._clock() >= one.due_s:
                self._overdue(one)

    def _notice(self, one: Requested, report: Progress | None) -> None:
        process = one.process
        if process is None or report is None or report.pid != process.pid:
            return
        if report.at_us < (process.created_s - _CLOCK_GRAIN_S) * 1e6:
            return  # of an earlier process with this name and pid
        if one.report is None:
            self._launcher.remember(one.name, process, report.incarnation)
        one.report = report
        if one.phase is Phase.STARTING and not one.verdict:
            one.phase, one.due_s, one.ready_s = Phase.READY, float("inf"), self._clock()
            self._tell(one.name, ReplicaChange.READY, f"pid {process.pid}")

    def _overdue(self, one: Requested) -> None:
        match one.phase:
            case Phase.WAITING:
                self._start(one)
            case Phase.STARTING:
                one.due_s, one.verdict = float("inf"), f"not warm within {self._patience.start_s:g} s"
                self._signal(one, signal.SIGKILL)
            case Phase.DRAINING:
                self._stop(one)
            case Phase.STOPPING:
                one.due_s, one.verdict = float("inf"), f"killed: still there {self._patience.stop_s:g} s after SIGTERM"
                self._signal(one, signal.SIGKILL)
            case Phase.READY:
                pass

    def _start(self, one: Requested) -> None:
        one.report, one.verdict = None, ""
        try:
            one.process = self._launcher.start(one.name)
        except OSError as failed:
            self._failed(one, str(failed))
            return
        one.phase, one.due_s = Phase.STARTING, self._clock() + self._patience.start_s
        self._tell(one.name, ReplicaChange.STARTED, f"pid {one.process.pid}")

    def _stop(self, one: Requested) -> None:
        one.phase, one.due_s = Phase.STOPPING, self._clock() + self._patience.stop_s
        self._signal(one, signal.SIGTERM)

    def _ended(self, one: Requested, end: Exit) -> None:
        """A process is no more: expected, a start that failed, or a death."""
        how = one.verdict or end.how
        leaving = one.phase in (Phase.DRAINING, Phase.STOPPING)
        if one.phase is Phase.STARTING:
            self._failed(one, how)
        elif leaving:
            if one.verdict or not end.clean:
                self._evict(one.report)
            self._gone(one, ReplicaChange.LEFT, how)
        else:
            self._evict(one.report)
            self._gone(one, ReplicaChange.DIED, self._with_last_words(one.name, how))
            young = self._clock() - one.ready_s < self._patience.healthy_s
            self._replace(one.name, one.failures + 1 if young else 0)

    def _replace(self, name: str, failures: int) -> None:
        self._tell(name, ReplicaChange.REQUESTED, "in place of the one that died")
        wait_s = self._patience.backoff(failures)
        self._replicas[name] = Requested(name, Phase.WAITING, self._clock() + wait_s, failures=failures)

    def _failed(self, one: Requested, how: str) -> None:
        one.failures += 1
        wait_s = self._patience.backoff(one.failures)
        one.process, one.phase, one.due_s = None, Phase.WAITING, self._clock() + wait_s
        self._launcher.forget(one.name)
        detail = f"{self._with_last_words(one.name, how)}; attempt {one.failures + 1} in {wait_s:g} s"
        self._tell(one.name, ReplicaChange.START_FAILED, detail)

    def _gone(self, one: Requested, change: ReplicaChange, detail: str) -> None:
        self._tell(one.name, change, detail)
        self._launcher.forget(one.name)
        del self._replicas[one.name]
        if one.wanted_again:
            self.request([one.name])

    def _evict(self, report: Progress | None) -> None:
        if report is not None and report.member_id:
            self.evictions.append(
                Eviction(replica=report.replica, member_id=report.member_id, incarnation=report.incarnation)
            )

    def _signal(self, one: Requested, number: signal.Signals) -> None:
        if one.process is not None:
            one.process.signal(number)

    def _with_last_words(self, name: str, how: str) -> str:
        last = self._launcher.last_log_line(name)
        return f"{how}; last log line: {last}" if last else how

    def _tell(self, name: str, change: ReplicaChange, detail: str = "") -> None:
        self._record(ReplicaChanged(at_us=int(self._clock() * 1e6), replica=name, change=change, detail=detail))
