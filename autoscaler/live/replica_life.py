"""The states of a replica, and how long its scaler waits in each."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from autoscaler.live.launcher import ReplicaProcess
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
