"""Detects scale-ups that do not help: the limit is then elsewhere, such as a database that all replicas share."""

from collections import deque
from typing import Final, NamedTuple

from contracts.journal import TickRecord

WATCHED_TICKS: Final = 10
"""Ticks with all new replicas ready after which a scale-up is judged."""
MEAN_TICKS: Final = 5
LEAST_SHARE: Final = 1 / 3
MAX_FAILED: Final = 1
"""Consecutive scale-ups below LEAST_SHARE that are not reported yet."""


class _Trial(NamedTuple):
    planned: int
    served: float
    """Events/s that the group served before."""


class ScaleUps:
    """Compares the throughput after each scale-up with that before and with the capacity of the new replicas."""

    def __init__(self) -> None:
        self._served: deque[float] = deque(maxlen=MEAN_TICKS)
        self._last: tuple[int, int] | None = None
        """Time and total lag of the last tick."""
        self._trial: _Trial | None = None
        self._ready_ticks = self._failed = 0
        self.problem = ""
        """A sentence about the last scale-ups if they brought too little; else empty."""

    def observe(self, tick: TickRecord) -> None:
        """Add one tick."""
        if not tick.partitions:
            return
        lag, arriving = sum(one.lag for one in tick.partitions), sum(one.arrival_rate for one in tick.partitions)
        if self._last is not None and tick.at_us > self._last[0]:
            self._served.append(arriving - (lag - self._last[1]) / (tick.at_us - self._last[0]) * 1e6)
        self._last = tick.at_us, lag
        if tick.action == "up" and len(self._served) == MEAN_TICKS:
            self._trial, self._ready_ticks = _Trial(tick.planned_replicas, sum(self._served) / MEAN_TICKS), 0
        elif self._trial is not None and tick.planned_replicas != self._trial.planned:
            self._trial = None  # another change mixes with it
        elif self._trial is not None and tick.ready_replicas >= self._trial.planned:
            self._ready_ticks += 1
            if self._ready_ticks == WATCHED_TICKS:
                self._judge(self._trial, tick, lag)
                self._trial = None

    def _judge(self, trial: _Trial, tick: TickRecord, lag: int) -> None:
        """Judge only if events still wait for longer than a second: otherwise the load has set the throughput."""
        capacity, served = trial.planned * tick.service_rate, sum(self._served) / MEAN_TICKS
        if lag < capacity or capacity <= trial.served:
            self._failed, self.problem = 0, ""
            return
        got, expected = served - trial.served, capacity - trial.served
        self._failed = self._failed + 1 if got < LEAST_SHARE * expected else 0
        self.problem = (
            f"the last {self._failed} scale-ups brought less than a third of what was expected, the newest {got:.0f} "
            f"of {expected:.0f} events/s; look for a limit that all replicas share, such as a database"
        ) * (self._failed > MAX_FAILED)
