"""Late events as replicas report them, from one observation to the next."""

from collections.abc import Callable

from contracts.clock import steady_s
from contracts.progress import Progress


class Lateness:
    """Told of every report: by the next observation a name may be another process, and who left has spoken last."""

    def __init__(self, clock: Callable[[], float] = steady_s) -> None:
        self._clock = clock
        self._heard: dict[str, tuple[str, int]] = {}
        """Replica → incarnation, and where its counter stood when it last spoke."""
        self._new: dict[str, int] = {}
        self._observed_s: float | None = None

    def hear(self, report: Progress) -> None:
        """Take in one report."""
        if report.late is None:
            return
        incarnation, before = self._heard.get(report.replica, ("", 0))
        if incarnation != report.incarnation:
            before = 0 if self._is_new(report) else report.late
        self._heard[report.replica] = report.incarnation, report.late
        self._new[report.replica] = self._new.get(report.replica, 0) + max(0, report.late - before)

    def take(self) -> dict[str, int]:
        """Return replica → late events since the last call, of all that have spoken since, whether they still run.

        At first none are new: they were late before anybody observed.
        """
        new, self._new = self._new, {}
        if self._observed_s is None:
            new = dict.fromkeys(new, 0)
        self._observed_s = self._clock()
        return new

    def _is_new(self, report: Progress) -> bool:
        """Tell whether an incarnation not heard before began since the last call: it has worked for no longer."""
        return self._observed_s is not None and report.busy_us / 1e6 <= self._clock() - self._observed_s
