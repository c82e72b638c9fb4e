"""The states of a replica, and how long its scaler waits in each."""

from dataclasses import dataclass
from enum import StrEnum

from autoscaler.live.launcher import ReplicaProcess
from contracts.progress import Progress


@dataclass(frozen=True, slots=True)
class Patience:
    """How long the scaler waits for what, in seconds."""

    start_s: float = 20.0
    """From the start of a process until it reports itself warm; then it is killed and started again."""
    drain_s: float = 10.0
    """From its release until a replica has given everything back; then it is stopped all the same."""
    stop_s: float = 8.0
    """From SIGTERM to SIGKILL. Longer than the group's session time-out, which is what a stuck replica may wait for."""
    healthy_s: float = 10.0
    """A replica that was ready for so long and dies is replaced at once; one that dies sooner waits its back-off."""
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
    DRAINING = "draining"
    STOPPING = "stopping"


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
