"""How long events wait while partitions change their owner: the model of Landau et al. 2024, section VI-C.

Inside an iteration of 30 s loads are constant. A consumer serves 133 units/s at most, though packers give it 100 at
most. A partition that it receives is not served for 5 s; what it kept is served first. An event is one unit of load
times one second, so figures weigh partitions by their volume.
"""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from studies.packing.courses import Owners

ITERATION_S: Final = 30.0
PAUSE_S: Final = 5.0
SERVICE_RATE: Final = 133.0


@dataclass(frozen=True, slots=True)
class Waits:
    """Latencies of all events of a stream."""

    delayed_s: NDArray[np.float64]
    """Latencies above 0, ascending."""
    events: int
    """All events, those without any delay too."""

    @property
    def share_delayed(self) -> float:
        """Share of the events that wait at all."""
        return self.delayed_s.size / self.events if self.events else 0.0

    @property
    def mean_s(self) -> float:
        """Mean over all events."""
        return float(self.delayed_s.sum()) / self.events if self.events else 0.0

    def quantile_of_delayed_s(self, share: float) -> float | None:
        """Return the quantile over delayed events alone, as the paper does; None when nothing is delayed."""
        return float(np.quantile(self.delayed_s, share)) if self.delayed_s.size else None

    def quantile_s(self, share: float) -> float:
        """Return the quantile over all events, those without delay counted as 0."""
        undelayed = self.events - self.delayed_s.size
        rank = share * max(self.events - 1, 0)
        below = math.floor(rank) - undelayed
        around = [float(self.delayed_s[at]) if 0 <= at < self.delayed_s.size else 0.0 for at in (below, below + 1)]
        part = rank - math.floor(rank)
        return around[0] + part * (around[1] - around[0]) if part else around[0]


def waits(course: Owners, loads: NDArray[np.int64]) -> Waits:
    """Return what events wait under these owners, the first iteration left out: it has nobody to receive from.

    Raises ValueError when a consumer that is busy with what it kept receives more: the model has no answer then.
    """
    delayed: list[NDArray[np.float64]] = []
    events = 0
    backlog_s = np.zeros(int(course.max()) + 1)
    for before, after, now in zip(course[:-1], course[1:], loads[1:], strict=True):
        kept = np.bincount(after[before == after], weights=now[before == after], minlength=backlog_s.size)
        received = np.bincount(after[before != after], weights=now[before != after], minlength=backlog_s.size)
        if np.any((kept >= SERVICE_RATE) & (received > 0)):
            raise ValueError(f"a consumer with {SERVICE_RATE:g} units/s or more cannot receive a partition")
        kept_rate = np.where(received > 0, np.minimum(kept, SERVICE_RATE), SERVICE_RATE)
        for owner in np.flatnonzero(kept):
            queue = _queue_s(kept[owner], kept_rate[owner], backlog_s[owner])
            events += queue.events
            delayed.append(queue.delayed_s)
            backlog_s[owner] = queue.last_s
        backlog_s[kept == 0] = 0.0
        for owner in np.flatnonzero(received):
            queue = _queue_s(received[owner], SERVICE_RATE - kept_rate[owner], PAUSE_S)
            events += queue.events
            delayed.append(queue.delayed_s)
    return Waits(np.sort(np.concatenate(delayed)) if delayed else np.empty(0), events)


def round_robin(partitions: int, iterations: int, count: int) -> Owners:
    """Return `kd_n`: partition p belongs to consumer p mod n for ever, as Kafka's RoundRobin assignor deals them."""
    return np.tile(np.arange(partitions) % count, (iterations, 1))


@dataclass(frozen=True, slots=True)
class _Queue:
    delayed_s: NDArray[np.float64]
    events: int
    last_s: float


def _queue_s(arrival_rate: float, service_rate: float, first_s: float) -> _Queue:
    """Return the latencies of one iteration: the first event waits `first_s`, each later one a constant more or less.

    Event i arrives at i/λ and is served at `first_s` + i/μ.
    """
    events = math.floor(ITERATION_S * arrival_rate)
    slope_s = 1 / service_rate - 1 / arrival_rate
    last_s = max(0.0, first_s + slope_s * (events - 1)) if events else first_s
    if first_s <= 0 and slope_s <= 0:
        return _Queue(np.empty(0), events, last_s)
    latency_s: NDArray[np.float64] = first_s + slope_s * np.arange(events, dtype=np.float64)
    return _Queue(latency_s[latency_s > 0], events, last_s)
