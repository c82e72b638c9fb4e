"""Outcomes of the events, collected during the run, so that a long run need not fit into memory twice."""

from collections import deque
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from autoscaler.simulator.arrivals import Arrivals
from autoscaler.simulator.rows import ServedEvents

Times = NDArray[np.int64]
MAX_SHORT_US: Final = 1 << 32
"""Latencies below this (71 minutes) are stored in 4 bytes if only latencies are kept."""


@dataclass(frozen=True, slots=True, eq=False)
class Events:
    """Every event by its number. Times are in µs since the start of the run."""

    intended_us: Times
    partition: NDArray[np.int32]
    started_us: Times
    done_us: Times
    replica: NDArray[np.int32]
    """Number of the replica that finished the event first."""

    def __len__(self) -> int:
        return len(self.intended_us)


@dataclass(frozen=True, slots=True, eq=False)
class Kill:
    """A replica was killed at `at_us`, when `committed` events of each partition were committed."""

    at_us: int
    replica: int
    committed: Times


class Outcomes:
    """Collects events as they are fed, and outcomes in the same order. keep: all data; else only latencies."""

    def __init__(self, *, keep: bool) -> None:
        self._keep = keep
        self._arrivals: list[Arrivals] = []
        self._served: list[ServedEvents] = []
        self._latencies: list[NDArray[Any]] = []
        self._unmatched: deque[Times] = deque()

    def add_arrivals(self, arrivals: Arrivals) -> None:
        """Add the next events."""
        self._unmatched.append(arrivals.intended_us)
        if self._keep:
            self._arrivals.append(arrivals)

    def add(self, served: ServedEvents) -> None:
        """Add the outcomes of the next events."""
        done_us = served.done_us
        while len(done_us):
            intended_us = self._unmatched.popleft()
            count = min(len(done_us), len(intended_us))
            latency_us = done_us[:count] - intended_us[:count]
            short = not self._keep and int(latency_us.max()) < MAX_SHORT_US
            self._latencies.append(latency_us.astype(np.uint32) if short else latency_us)
            done_us = done_us[count:]
            if count < len(intended_us):
                self._unmatched.appendleft(intended_us[count:])
        if self._keep:
            self._served.append(served)

    def latency_us(self) -> Times:
        """Return the latency of each event, by event number: completion time minus intended arrival time, µs."""
        assert not self._unmatched, "events have no outcome yet"
        return _join(self._latencies, np.int64 if self._keep else np.uint32)

    def events(self) -> Events:
        """Return all events; empty if they are not kept."""
        return Events(
            intended_us=_join([part.intended_us for part in self._arrivals]),
            partition=_join([part.partition for part in self._arrivals], np.int32),
            started_us=_join([part.started_us for part in self._served]),
            done_us=_join([part.done_us for part in self._served]),
            replica=_join([part.replica for part in self._served], np.int32),
        )


def repeated(events: Events, kills: list[Kill]) -> Times:
    """Return the numbers of the finished events that were served again because their replica died before the commit.

    The number of an event appears once for each repetition.
    """
    found = [np.empty(0, np.int64)]
    for kill in kills:
        for partition in np.unique(events.partition[events.replica == kill.replica]):
            uncommitted = np.flatnonzero(events.partition == partition)[kill.committed[partition] :]
            theirs = uncommitted[events.replica[uncommitted] == kill.replica]
            found.append(theirs[events.done_us[theirs] <= kill.at_us])
    return np.sort(np.concatenate(found))


def _join(parts: list[NDArray], dtype: type = np.int64) -> NDArray:  # type: ignore[type-arg]  # integers of any width
    if len(parts) == 1:
        return parts[0]
    return np.concatenate(parts) if parts else np.empty(0, dtype)
