"""What can be seen of the partitions: offsets, now or as they were some time ago."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from autoscaler.model import PartitionLoad, RecentArrivals
from autoscaler.simulator.settings import SimulationSettings

Slots = Callable[[int, int, int], NDArray[np.int64]]
"""(from_us, until_us, count) → events, shape (count, partitions)."""


class Counters(Protocol):
    """The offsets of an engine."""

    @property
    def now_us(self) -> int:
        """The present moment."""
        ...

    def produced(self) -> NDArray[np.int64]:
        """Events before now, by partition."""
        ...

    def committed(self) -> NDArray[np.int64]:
        """Events committed, by partition."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class _Look:
    at_us: int
    lag: NDArray[np.int64]


class Sight:
    """Looks at offsets and remembers the looks until they are old enough to be seen."""

    def __init__(self, counters: Counters, slots: Slots, settings: SimulationSettings) -> None:
        self._counters = counters
        self._slots = slots
        self._interval_us = round(settings.decision_interval_s * 1e6)
        self._count = max(1, round(settings.decision_interval_s / settings.slot_s))
        self._slot_s = self._interval_us / self._count / 1e6
        self._delay_us = round(settings.observation_delay_s * 1e6)
        self._looks: deque[_Look] = deque()
        self._commits: deque[NDArray[np.int64]] = deque()
        """As they were in time for the looks to come, where those see them late."""

    def note_commits(self) -> None:
        """Read the commits for a look to come."""
        self._commits.append(self._counters.committed())

    def look(self) -> None:
        """Read the offsets as they are now; commits as they were noted, where they were."""
        committed = self._commits.popleft() if self._commits else self._counters.committed()
        self._looks.append(_Look(self._counters.now_us, self._counters.produced() - committed))

    def see(self) -> tuple[tuple[PartitionLoad, ...], RecentArrivals]:
        """Return the newest look that is old enough: loads by partition, and the arrivals of the interval before it.

        Whoever wants to see at t must have let look at t − delay, or at the start where that is later.
        """
        if not self._delay_us:
            self.look()
        latest_us = max(0, self._counters.now_us - self._delay_us)
        while len(self._looks) > 1 and self._looks[1].at_us <= latest_us:
            self._looks.popleft()
        look = self._looks[0]
        counts = self._slots(look.at_us - self._interval_us, look.at_us, self._count)
        rates = (np.add.reduce(counts) / (self._interval_us / 1e6)).tolist()
        loads = tuple(map(PartitionLoad, range(len(rates)), rates, look.lag.tolist()))
        return loads, RecentArrivals(self._slot_s, counts)
