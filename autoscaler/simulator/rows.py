"""State of the compiled engines: arrays of records of events, replicas and partitions.

They contain only a part of the run, short enough for the processor's cache.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from autoscaler.simulator.arrivals import Arrivals
from autoscaler.simulator.chance import ServiceTimes

Rows = NDArray[np.void]
"""An array of records: one row per event, replica or partition."""

NONE: Final = -1
NEVER: Final = 1 << 62
MAX_SHORT_US: Final = 1 << 32
"""Latencies below this (71 minutes) are stored in 4 bytes if only latencies are kept."""

EVENT: Final = np.dtype(
    [
        ("intended_us", np.int64),
        ("demand_us", np.float64),
        ("started_us", np.int64),
        ("done_us", np.int64),  # NEVER until it is assigned
        ("next", np.int64),  # next event of its chain
        ("partition", np.int32),
        ("replica", np.int32),
    ],
    align=True,
)
REPLICA: Final = np.dtype(
    [
        ("speed", np.float64),
        ("slow_factor", np.float64),  # during the slow period
        ("free_us", np.int64),  # earliest start of the next event
        ("first", np.int64),  # chain of uncommitted events; in a pool, the acquired event
        ("last", np.int64),
        ("waiting", np.int64),  # under a shared limit, first unstarted event of the chain
        ("busy_us", np.int64),  # under a shared limit, total time including the wait for the limit
        ("done_us", np.int64),  # end of the newest committed event
        ("concerned", np.bool_),  # whether a pending command concerns it
        ("alive", np.bool_),
    ],
    align=True,
)
PARTITION: Final = np.dtype(
    [
        ("owner", np.int64),
        ("first", np.int64),  # chain of events without an owner
        ("last", np.int64),  # its end
        ("produced", np.int64),
        ("committed", np.int64),
        ("concerned", np.bool_),
    ],
    align=True,
)
SERVICE: Final = np.dtype(
    [
        ("slow_from_us", np.int64),
        ("slow_until_us", np.int64),
        ("open_us", np.int64),  # under a shared limit, earliest next start
        ("each_us", np.int64),
        ("gap_us", np.int64),  # minimum gap of starts in this row's period of each_us; 0: no limit
    ],
    align=True,
)


@dataclass(frozen=True, slots=True, eq=False)
class Events:
    """Consecutive events by their numbers. Times are in µs since the start of the run."""

    intended_us: NDArray[np.int64]
    partition: NDArray[np.int32]
    started_us: NDArray[np.int64]
    done_us: NDArray[np.int64]
    replica: NDArray[np.int32]
    """Number of the replica that finished the event first."""

    def __len__(self) -> int:
        return len(self.intended_us)

    @classmethod
    def joined(cls, parts: Sequence["Events"]) -> "Events":
        """Return the events of all parts."""
        columns = {name: [getattr(part, name) for part in parts] for name in cls.__dataclass_fields__}
        return cls(**{name: np.concatenate([np.empty(0, EVENT[name]), *column]) for name, column in columns.items()})


class Outcomes:
    """Collects finished events, so that a long run need not fit into memory twice. keep: all data; else latencies."""

    def __init__(self, *, keep: bool) -> None:
        self._keep = keep
        self._kept: list[Events] = []
        self._latencies: list[NDArray[Any]] = []

    def add(self, finished: Events) -> None:
        """Add the next events."""
        latency_us = finished.done_us - finished.intended_us
        short = not self._keep and int(latency_us.max(initial=0)) < MAX_SHORT_US
        self._latencies.append(latency_us.astype(np.uint32) if short else latency_us)
        if self._keep:
            self._kept.append(finished)

    def latency_us(self) -> NDArray[np.int64]:
        """Return the latency of each event, by event number: completion time minus intended arrival time, µs."""
        return np.concatenate(self._latencies)

    def events(self) -> Events:
        """Return all events; empty if they are not kept."""
        return Events.joined(self._kept)


class Window:
    """Rows of the events base … loaded − 1."""

    def __init__(self, service: ServiceTimes) -> None:
        self._service = service
        self.rows: Rows = np.empty(0, EVENT)
        self.base = 0
        self.loaded = 0

    def load(self, arrivals: Arrivals, *, oldest: int, arrived: int) -> None:
        """Add the next events, each linked to its successor. Rows before `oldest` may be overwritten.

        arrived: number of the first event that has not arrived.
        """
        count = len(arrivals)
        self._make_room(count, oldest)
        rows = self.rows[self.loaded - self.base : self.loaded - self.base + count]
        rows["intended_us"] = arrivals.intended_us
        rows["partition"] = arrivals.partition
        rows["demand_us"] = self._service.demands_us(self.loaded, count)
        rows["done_us"] = NEVER
        rows["next"] = np.arange(self.loaded + 1, self.loaded + count + 1)
        rows["next"][-1] = NONE
        if arrived < self.loaded:  # else the last row may already be in a chain
            self.rows["next"][self.loaded - 1 - self.base] = self.loaded
        self.loaded += count

    def outcomes(self, first: int, end: int) -> Events:
        """Return a copy of the outcomes of the events first … end − 1."""
        rows = self.rows[first - self.base : end - self.base]
        return Events(**{name: rows[name].copy() for name in Events.__dataclass_fields__})

    def _make_room(self, count: int, oldest: int) -> None:
        if self.loaded - self.base + count <= len(self.rows):
            return
        retained = self.rows[oldest - self.base : self.loaded - self.base]
        if 2 * (len(retained) + count) > len(self.rows):
            self.rows = np.empty(2 * (len(retained) + count), EVENT)
        self.rows[: len(retained)] = retained
        self.base = oldest


class EventServer(ABC):
    """Base of engines: numbered replicas and partitions, and their events. Time only moves forward.

    Commands and queries refer to `now_us`. The memory contains only the events that have not arrived or
    are unfinished, and the outcomes that were not taken.
    """

    def __init__(self, partitions: int, service: ServiceTimes, *, target_us: int = NEVER) -> None:
        """target_us: events that take longer are counted as late."""
        self._target_us = target_us
        self._late = np.zeros(0, np.int64)
        """Late events by replica, among the stored outcomes."""
        self._times = service
        common = (service.slow_from_us, service.slow_until_us, 0, service.limit_each_us)
        self._service: Rows = np.array([(*common, gap_us) for gap_us in service.limit_gaps_us or (0,)], SERVICE)
        """The first row has the parameters of the loops. The others have the later shared limits."""
        self._partitions: Rows = np.zeros(partitions, PARTITION)
        for name in ("owner", "first", "last"):
            self._partitions[name] = NONE
        self._replicas: Rows = np.empty(0, REPLICA)
        self._events = Window(service)
        self._arrived = 0
        """Number of the first event that has not arrived."""
        self.now_us = 0
        """Every event that starts before this time has started."""
        self._collected: list[Events] = []
        """Stored outcomes that were not taken. `_collected_until` is the event after them."""
        self._collected_until = 0

    def add_replica(self) -> int:
        """Add a replica without partitions. Return its number. Numbers start at 0."""
        number = len(self._replicas)
        added = np.zeros(1, REPLICA)
        added["speed"] = self._times.settings.speed_of(number)
        added["slow_factor"] = self._times.settings.slow_factor_of(number)
        added["free_us"], added["alive"] = self.now_us, True
        added["first"] = added["last"] = added["waiting"] = NONE
        self._replicas = np.concatenate([self._replicas, added])
        return number

    def feed(self, arrivals: Arrivals) -> None:
        """Add the next events, at least one. They must not be earlier than events before them, nor in the past."""
        self._collect()
        self._events.load(arrivals, oldest=self._oldest_needed(), arrived=self._arrived)

    def produced(self) -> NDArray[np.int64]:
        """Return the number of events that have arrived (intended < now), by partition."""
        produced: NDArray[np.int64] = self._partitions["produced"].copy()
        return produced

    def take(self) -> Events:
        """Return the new outcomes of finished events, up to the first unfinished one."""
        self._collect()
        parts, self._collected = self._collected, []
        return Events.joined(parts)

    def late(self) -> NDArray[np.int64]:
        """Return the number of late events of each replica until now."""
        self._collect()
        rows = self._events.rows[self._collected_until - self._events.base : self._arrived - self._events.base]
        late = (rows["done_us"] <= self.now_us) & (rows["done_us"] - rows["intended_us"] > self._target_us)
        return self._late_with(rows["replica"][late])

    @abstractmethod
    def _collect(self) -> None:
        """Store the outcomes of finished events, so that their rows can be reused."""

    @abstractmethod
    def _oldest_needed(self) -> int:
        """Return the number of the first event whose row is still needed."""

    def _late_with(self, replicas: NDArray[np.int32]) -> NDArray[np.int64]:
        counts = np.bincount(replicas, minlength=len(self._replicas))
        counts[: len(self._late)] += self._late
        return counts

    def _store(self, served: Events) -> None:
        self._collected_until += len(served)
        self._late = self._late_with(served.replica[served.done_us - served.intended_us > self._target_us])
        self._collected.append(served)

    def _state(self) -> tuple[Rows, int, Rows, Rows]:
        return self._events.rows, self._events.base, self._replicas, self._partitions
