"""What the scaler tells of its replicas: every change to the journal, every death to whoever writes plans."""

from collections.abc import Callable

from autoscaler.live.launcher import Launcher
from contracts.journal import ReplicaChange, ReplicaChanged
from contracts.plan import Eviction
from contracts.progress import Progress


class Register:
    """Births and deaths, in the order in which the scaler sees them."""

    def __init__(
        self, launcher: Launcher, record: Callable[[ReplicaChanged], None], clock: Callable[[], float]
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
