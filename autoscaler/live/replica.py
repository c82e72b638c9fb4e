"""A replica as its scaler sees it: its phase, and the time limits of the phases."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from autoscaler.live.launcher import Instance
from contracts.progress import Progress, ReplicaState

STOP_MARGIN_S: Final = 6.0
"""Time a replica needs beyond its drain time: to finish its event, commit, leave the group and exit."""
STOPPING_STATES: Final = (ReplicaState.DRAINING, ReplicaState.STOPPING)
"""States that a replica reports while it stops."""
STATES_WITHOUT_PARTITIONS: Final = (ReplicaState.WARM, ReplicaState.DRAINED, ReplicaState.STOPPING)
"""States in which a replica owns no partitions, or will release no more of them."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Time limits of the scaler, seconds."""

    start_s: float = 20.0
    """From the start of a process or container until the replica is warm. After this time it is restarted."""
    drain_s: float = 12.0
    """From the release of a replica until it owns no partitions. After this time it is stopped anyway. Slightly
    longer than the rebalance timeout of the group."""
    stop_s: float = 14.0
    """From SIGTERM to SIGKILL: the replica's drain time (8 s) plus STOP_MARGIN_S."""
    min_uptime_s: float = 10.0
    """A replica that exits after being ready for this duration is replaced at once, else after a back-off."""
    presumed_warm_s: float = 5.0
    """If reports cannot be read, a process counts as warm after this duration (twice a slow start). A plan may name it,
    because a replica outside the group gets no partitions."""
    backoff_s: float = 0.5
    """Wait before the first retry of a failed start. It doubles for each further retry."""
    backoff_limit_s: float = 30.0

    def backoff(self, failures: int) -> float:
        """Return the wait after this number of consecutive failures, seconds."""
        return 0.0 if failures == 0 else min(self.backoff_limit_s, self.backoff_s * 2.0 ** min(failures - 1, 16))


class Phase(StrEnum):
    """Phase of a replica from its scaler's point of view."""

    WAITING = "waiting"
    STARTING = "starting"
    READY = "ready"
    LEAVING = "leaving"
    """The replica drains, but not on request of its scaler. It will be replaced."""
    DRAINING = "draining"
    STOPPING = "stopping"


@dataclass(slots=True)
class RequestedReplica:
    """A requested replica. Only the scaler changes it."""

    name: str
    phase: Phase
    due_s: float
    """Time at which the current phase times out."""
    instance: Instance | None = None
    report: Progress | None = None
    incarnation: str = ""
    """Incarnation in the replica's reports; empty: not known yet. An earlier autoscaler may have saved it."""
    previous_incarnation: str = ""
    """Incarnation that last reported under this name before the start. Its reports are ignored, even with this pid."""
    requested_s: float | None = None
    """When it was requested (scaler's clock, seconds); None: unknown."""
    ready_s: float = 0.0
    failures: int = 0
    kill_reason: str = ""
    is_requested_again: bool = False
    is_replacement: bool = False
    """Whether this instance replaces one that exited without a request."""
    died_s: float | None = None
    """When the replaced instance died; None: it exited cleanly."""

    @property
    def is_absent(self) -> bool:
        """Whether the replica cannot serve although it should: it is leaving, has exited or fails to start."""
        is_starting = self.phase in (Phase.WAITING, Phase.STARTING)
        return self.phase is Phase.LEAVING or (is_starting and (self.failures > 0 or self.is_replacement))
