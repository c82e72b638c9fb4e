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
UNASKED: Final = (ReplicaState.DRAINING, ReplicaState.STOPPING)
"""States of a replica that was stopped by another than its scaler."""
EMPTY: Final = (ReplicaState.WARM, ReplicaState.DRAINED, ReplicaState.STOPPING)
"""States of a replica that owns nothing, or is past giving back."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long the scaler waits for what, in seconds."""

    start_s: float = 20.0
    """From the moment a replica runs (a pending one does not) until it is warm; then it is killed and started again."""
    drain_s: float = 12.0
    """From its release until a replica has given everything back; then it is stopped all the same. A little more than
    the group's rebalance time-out."""
    stop_s: float = 14.0
    """From SIGTERM to SIGKILL: the replica's own drain time (8 s) and STOP_MARGIN_S."""
    healthy_s: float = 10.0
    """A replica that was ready for so long and ends is replaced at once; one that ends sooner waits its back-off."""
    unheard_s: float = 5.0
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
class Requested:
    """One replica that was requested, as its scaler sees it. Changed by the scaler alone."""

    name: str
    phase: Phase
    due_s: float
    """When the next step happens if nothing else does."""
    instance: Instance | None = None
    report: Progress | None = None
    incarnation: str = ""
    """How it reports itself, where that is known: an earlier autoscaler has written it down."""
    before: str = ""
    """Incarnation that had reported under this name when this instance was started: another one, even with its pid."""
    ready_s: float = 0.0
    failures: int = 0
    verdict: str = ""
    wanted_again: bool = False
    replaces: bool = False
    """It follows one of this name that has ended unasked."""
    died_s: float | None = None
    """When that one died; None where it stopped in order."""

    @property
    def absent(self) -> bool:
        """Whether it cannot serve although it should have been there: it leaves, has ended, or fails to start."""
        begins = self.phase in (Phase.WAITING, Phase.STARTING)
        return self.phase is Phase.LEAVING or (begins and (self.failures > 0 or self.replaces))


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
        patience: Patience | None = None,
        joins_warm: bool = False,
        obeys_plans: bool = True,
        clock: Callable[[], float] = monotonic_s,
    ) -> None:
        self.launcher, self._record, self._clock = launcher, record, clock
        self._patience = patience or Patience()
        self._joins_warm, self._obeys_plans = joins_warm, obeys_plans
        self._replicas: dict[str, Requested] = {}
        self._reports: Mapping[str, Progress] = {}
        self.evictions: list[Eviction] = []
        """Members known dead. The publisher removes those that it has published."""

    @property
    def requested(self) -> tuple[str, ...]:
        """Wanted replicas, in the order of their requests."""
        going = (Phase.DRAINING, Phase.STOPPING)
        return tuple(one.name for one in self._replicas.values() if one.phase not in going or one.wanted_again)

    @property
    def running(self) -> tuple[str, ...]:
        """Replicas that run or are being started, those on their way out included."""
        return tuple(one.name for one in self._replicas.values() if one.instance is not None)

    def ready(self, name: str) -> bool:
        """Return whether `name` could serve at once, were it given partitions."""
        return name in self._replicas and self._replicas[name].phase is Phase.READY

    def absent(self, name: str) -> bool:
        """Return whether `name` cannot serve although it should: it leaves unasked, has ended, or fails to start."""
        return name in self._replicas and self._replicas[name].absent

    def died_s(self, name: str) -> float | None:
        """Return when `name` died (by the scaler's clock), while it has not come back; None if it did not."""
        one = self._replicas.get(name)
        return one.died_s if one is not None and one.absent else None

    def adopt(self, reports: Mapping[str, Progress]) -> None:
        """Take over the replicas that an earlier autoscaler left running, and declare dead those that have ended."""
        for left in self.launcher.find_orphans():
            name, instance = left.name, left.instance
            report, ended = reports.get(name), instance.exit()
            if ended is None:
                due_s = self._clock() + self._patience.start_s
                self._replicas[name] = Requested(name, Phase.STARTING, due_s, instance, incarnation=left.incarnation)
                self._tell(name, ReplicaChange.ADOPTED, instance.where)
                continue
            in_order = ended.clean and ended.known
            how = f"{instance.where} ended while no autoscaler watched: {ended.how}"
            self._tell(name, ReplicaChange.LEFT if in_order else ReplicaChange.DIED, self._with_last_words(name, how))
            self.launcher.forget(name)
            self._evict(report if report is not None and not in_order and instance.wrote(report) else None)
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
        """Remove `name`: once it has left the group, or at a deadline, it is stopped."""
        one = self._replicas.get(name)
        if one is not None and one.phase is Phase.READY and self._obeys_plans:
            one.phase, one.due_s = Phase.DRAINING, self._clock() + self._patience.drain_s
        elif one is not None and one.phase is not Phase.DRAINING:
            self._let_go(one)

    def _let_go(self, one: Requested) -> None:
        one.wanted_again = False
        if one.instance is None:
            self._gone(one, ReplicaChange.LEFT, "had not started")
        elif one.phase is not Phase.STOPPING:
            self._stop(one)

    def kill(self, name: str, why: str) -> None:
        """End `name` at once, as if it had died; it is evicted and replaced."""
        one = self._replicas.get(name)
        if one is not None and not one.verdict:
            self._kill(one, why)

    def _kill(self, one: Requested, verdict: str) -> None:
        one.due_s, one.verdict = float("inf"), verdict
        if one.instance is not None:
            one.instance.kill()

    def stop_all(self) -> None:
        """Stop every replica; each gives back what it owns as it leaves."""
        for one in list(self._replicas.values()):
            self._let_go(one)

    def reconcile(self, reports: Mapping[str, Progress], *, unheard: bool = False) -> None:
        """Take for each replica the step that is due.

        reports: the newest of each replica. unheard: most replicas are silent, so the silence of one is no evidence.
        """
        self._reports, patience, now_s = reports, self._patience, self._clock()
        for one in list(self._replicas.values()):
            self._notice(one, reports.get(one.name))
            ended = one.instance.exit() if one.instance is not None else None
            if ended is not None:
                self._ended(one, ended)
            elif one.phase is Phase.STARTING and one.instance is not None and one.instance.pending:
                one.due_s = now_s + patience.start_s  # that it waits is not its failure
            elif unheard and one.phase is Phase.STARTING and now_s >= one.due_s - patience.start_s + patience.unheard_s:
                self._take_for_ready(one, "lives; its reports cannot be read")
            elif now_s >= one.due_s:
                self._overdue(one)

    def _notice(self, one: Requested, report: Progress | None) -> None:
        """Take in a report of the instance; old reports, and those of other instances, are ignored."""
        instance = one.instance
        if instance is None or report is None or not instance.wrote(report):
            return
        if report.incarnation == one.before or one.incarnation not in ("", report.incarnation):
            return
        if one.report is None:
            one.incarnation = report.incarnation
            with suppress(OSError):  # a full disk: the file of its start suffices to find it again
                self.launcher.remember(one.name, report.incarnation)
        one.report = report
        if one.phase is Phase.STARTING and not one.verdict and self._able(report):
            self._take_for_ready(one, instance.where)
        elif one.phase is Phase.READY and report.state in UNASKED:
            one.phase, one.due_s = Phase.LEAVING, self._clock() + self._patience.stop_s
        elif one.phase is Phase.DRAINING and report.state in (*EMPTY, ReplicaState.DRAINING):
            if report.state in EMPTY:
                self._tell(one.name, ReplicaChange.DRAINED)
            self._stop(one)

    def _take_for_ready(self, one: Requested, detail: str) -> None:
        one.phase, one.due_s, one.ready_s = Phase.READY, float("inf"), self._clock()
        one.replaces, one.died_s = False, None
        self._tell(one.name, ReplicaChange.READY, detail)

    def _able(self, report: Progress) -> bool:
        if report.state is ReplicaState.WARM:
            return not self._joins_warm or bool(report.member_id)
        return report.state not in UNASKED  # one that was drained joins again when a plan names it

    def _overdue(self, one: Requested) -> None:
        match one.phase:
            case Phase.WAITING:
                self._start(one)
            case Phase.STARTING:
                self._kill(one, f"not warm within {self._patience.start_s:g} s")
            case Phase.DRAINING:
                self._stop(one)
            case Phase.LEAVING | Phase.STOPPING:
                self._kill(one, f"killed: still there {self._patience.stop_s:g} s after SIGTERM")

    def _start(self, one: Requested) -> None:
        last = self._reports.get(one.name)
        one.report, one.verdict, one.incarnation, one.before = None, "", "", last.incarnation if last else ""
        try:
            one.instance = self.launcher.start(one.name)
        except OSError as failed:
            self._failed(one, str(failed))
            return
        one.phase, one.due_s = Phase.STARTING, self._clock() + self._patience.start_s
        self._tell(one.name, ReplicaChange.STARTED, one.instance.where)

    def _stop(self, one: Requested) -> None:
        """Ask it to stop, unless it reports that it stops: a second signal could cut its drain short."""
        one.phase, one.due_s = Phase.STOPPING, self._clock() + self._patience.stop_s
        if one.instance is not None and (one.report is None or one.report.state not in UNASKED):
            one.instance.ask_to_stop()

    def _ended(self, one: Requested, end: Exit) -> None:
        """An instance has ended: as expected, in a failed start, by death, or because another process stopped it."""
        how = one.verdict or end.how
        if one.phase is Phase.STARTING:
            self._failed(one, how)
        elif one.phase in (Phase.DRAINING, Phase.STOPPING):
            if one.verdict or not end.clean:
                self._evict(one.report)
            self._gone(one, ReplicaChange.LEFT, how)
        elif end.clean and not one.verdict and (end.known or one.phase is Phase.LEAVING):
            self._gone(one, ReplicaChange.LEFT, f"{how}; its scaler had not asked it to stop")
            self._replace(one, died_s=None)
        else:
            self._evict(one.report)
            self._gone(one, ReplicaChange.DIED, self._with_last_words(one.name, how))
            self._replace(one, died_s=self._clock())

    def _replace(self, one: Requested, died_s: float | None) -> None:
        how = "stopped" if died_s is None else "died"
        self._tell(one.name, ReplicaChange.REQUESTED, f"in place of the one that {how}")
        young = self._clock() - one.ready_s < self._patience.healthy_s
        failures = one.failures + 1 if young else 0
        due_s = self._clock() + self._patience.backoff(failures)
        self._replicas[one.name] = Requested(
            one.name, Phase.WAITING, due_s, failures=failures, replaces=True, died_s=died_s
        )

    def _failed(self, one: Requested, how: str) -> None:
        one.failures += 1
        wait_s = self._patience.backoff(one.failures)
        one.instance, one.phase, one.due_s = None, Phase.WAITING, self._clock() + wait_s
        detail = f"{self._with_last_words(one.name, how)}; attempt {one.failures + 1} in {wait_s:g} s"
        self.launcher.forget(one.name)
        self._tell(one.name, ReplicaChange.START_FAILED, detail)

    def _gone(self, one: Requested, change: ReplicaChange, detail: str) -> None:
        self._tell(one.name, change, detail)
        self.launcher.forget(one.name)
        del self._replicas[one.name]
        if one.wanted_again:
            self.request([one.name])

    def _tell(self, name: str, change: ReplicaChange, detail: str = "") -> None:
        self._record(ReplicaChanged(at_us=now_us(), replica=name, change=change, detail=detail))

    def _evict(self, report: Progress | None) -> None:
        if report is not None and report.member_id:
            about = {"member_id": report.member_id, "incarnation": report.incarnation}
            self.evictions.append(Eviction(replica=report.replica, **about))

    def _with_last_words(self, name: str, how: str) -> str:
        last = self.launcher.last_log_line(name)
        return f"{how}; last log line: {last}" if last else how
