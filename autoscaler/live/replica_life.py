"""The states of a replica, how long its scaler waits in each, and what it tells of them."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from autoscaler.live.launcher import ProcessLauncher, ReplicaProcess
from contracts.journal import ReplicaChange, ReplicaChanged
from contracts.plan import Eviction
from contracts.progress import Progress, ReplicaState

STOP_MARGIN_S: Final = 6.0
"""What a replica may need beyond its own drain time: the event in flight, its commit, leaving the group, its exit."""
UNASKED: Final = (ReplicaState.DRAINING, ReplicaState.STOPPING)
"""What a replica reports when somebody else than its scaler has told it to stop."""
EMPTY: Final = (ReplicaState.WARM, ReplicaState.DRAINED, ReplicaState.STOPPING)
"""What a replica reports that owns nothing, or is past giving back."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long the scaler waits for what, in seconds."""

    start_s: float = 20.0
    """From the start of a process until it reports itself warm; then it is killed and started again."""
    drain_s: float = 12.0
    """From its release until a replica has given everything back; then it is stopped all the same. A little more than
    the group's rebalance time-out, which a round may take that has to wait for a slow member."""
    stop_s: float = 14.0
    """From SIGTERM to SIGKILL: the replica's own drain time (8 s) and STOP_MARGIN_S."""
    healthy_s: float = 10.0
    """A replica that was ready for so long and ends is replaced at once; one that ends sooner waits its back-off."""
    backoff_s: float = 0.5
    """Before the first repetition of a failed start; doubled for each further one."""
    backoff_limit_s: float = 30.0

    def backoff(self, failures: int) -> float:
        """Return how long to wait after so many failures in a row, in seconds."""
        return 0.0 if failures == 0 else min(self.backoff_limit_s, self.backoff_s * 2.0 ** min(failures - 1, 16))


class Phase(StrEnum):
    """Where a replica stands, as its scaler sees it."""

    WAITING = "waiting"
    """To be started at `due_s`."""
    STARTING = "starting"
    READY = "ready"
    LEAVING = "leaving"
    """Asks to be drained although its scaler did not tell it to stop. It will be replaced."""
    DRAINING = "draining"
    """Released: it shall give back what it owns."""
    STOPPING = "stopping"
    """Told to stop, or about to, and not wanted any more."""


@dataclass(slots=True)
class Requested:
    """One replica that was requested, as its scaler sees it. Changed by the scaler alone."""

    name: str
    phase: Phase
    due_s: float
    """When the next step happens if nothing else does."""
    process: ReplicaProcess | None = None
    report: Progress | None = None
    """Newest report of this very process."""
    ready_s: float = 0.0
    failures: int = 0
    """Starts in a row that led to nothing."""
    verdict: str = ""
    """Why it was killed."""
    wanted_again: bool = False
    replaces: bool = False
    """It shall follow a process of this name that has ended unasked."""
    died_s: float | None = None
    """When that process died; None where it stopped in order."""

    @property
    def absent(self) -> bool:
        """Whether it cannot serve although it should have been there: it leaves, has ended, or fails to start."""
        if self.phase is Phase.LEAVING:
            return True
        return self.phase in (Phase.WAITING, Phase.STARTING) and (self.failures > 0 or self.replaces)


class Register:
    """Births and deaths as the scaler sees them: each change for the journal, each death for whoever writes plans."""

    def __init__(
        self, launcher: ProcessLauncher, record: Callable[[ReplicaChanged], None], clock: Callable[[], float]
    ) -> None:
        self._launcher = launcher
        self._record = record
        self._clock = clock
        self.evictions: list[Eviction] = []
        """Members known dead. Whoever publishes them removes them."""

    def tell(self, name: str, change: ReplicaChange, detail: str = "") -> None:
        """Record one change."""
        self._record(ReplicaChanged(at_us=int(self._clock() * 1e6), replica=name, change=change, detail=detail))

    def evict(self, report: Progress | None) -> None:
        """Note that the process of `report` is dead; of one that never was in the group there is nothing to say."""
        if report is not None and report.member_id:
            self.evictions.append(
                Eviction(replica=report.replica, member_id=report.member_id, incarnation=report.incarnation)
            )

    def with_last_words(self, name: str, how: str) -> str:
        """Return `how` it ended, with the last line of its log."""
        last = self._launcher.last_log_line(name)
        return f"{how}; last log line: {last}" if last else how
