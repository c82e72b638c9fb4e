"""State of the compiled engines: arrays of records of events, replicas and partitions.

They contain only a part of the run, short enough for the processor's cache.
"""

from abc import ABC, abstractmethod
from collections import deque
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from autoscaler.simulator.arrivals import Arrivals, check_next
from autoscaler.simulator.chance import BLOCK, ServiceTimes

Rows = NDArray[np.void]
"""An array of records: one row per event, replica or partition."""

NONE: Final = -1
NEVER: Final = 1 << 62
LOADED_AT_ONCE: Final = 2 * BLOCK
"""Events that are loaded together."""

EVENT: Final = np.dtype(
    [
        ("intended_us", np.int64),
        ("demand_us", np.float64),
        ("started_us", np.int64),
        ("done_us", np.int64),  # NEVER until it is assigned
        ("next", np.int64),  # next event of its chain
        ("partition", np.int32),
        ("replica", np.int32),
        ("polls", np.bool_),  # whether it is the first of a batch
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
        ("polled_us", np.int64),  # time of the newest batch
        ("room", np.int64),  # events that the batch can still take; 0: it is closed
        ("done_us", np.int64),  # end of the newest committed batch; in a pool, event
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
        ("poll_events", np.int64),
        ("slow_from_us", np.int64),
        ("slow_until_us", np.int64),
        ("open_us", np.int64),  # under a shared limit, earliest next start
        ("each_us", np.int64),
        ("gap_us", np.int64),  # minimum gap of starts in this row's period of each_us; 0: no limit
    ],
    align=True,
)


@dataclass(frozen=True, slots=True, eq=False)
class ServedEvents:
    """Outcomes of the events first … first + len − 1."""

    first: int
    started_us: NDArray[np.int64]
    done_us: NDArray[np.int64]
    replica: NDArray[np.int32]


class Window:
    """Rows of the events base … loaded − 1. Later events wait in the chunks in which they were fed."""

    def __init__(self, service: ServiceTimes) -> None:
        self._service = service
        self._fed: deque[Arrivals] = deque()
        self._skip = 0
        """Events of the first chunk that are already loaded."""
        self.rows: Rows = np.empty(0, EVENT)
        self.base = 0
        self.loaded = 0
        self.next_us = NEVER
        """Arrival of the first event that is not loaded, µs."""

    def feed(self, arrivals: Arrivals) -> None:
        """Add a chunk of at least one event."""
        self._fed.append(arrivals)
        if len(self._fed) == 1:
            self._look_ahead()

    def load(self, oldest: int) -> None:
        """Load the next events, each linked to its successor. Rows before `oldest` may be overwritten."""
        arrivals = self._fed[0]
        count = min(len(arrivals) - self._skip, LOADED_AT_ONCE - self.loaded % BLOCK)
        self._make_room(count, oldest)
        rows = self.rows[self.loaded - self.base : self.loaded - self.base + count]
        rows["intended_us"] = arrivals.intended_us[self._skip : self._skip + count]
        rows["partition"] = arrivals.partition[self._skip : self._skip + count]
        rows["demand_us"] = self._service.demands_us(self.loaded, count)
        rows["done_us"] = NEVER
        rows["next"] = np.arange(self.loaded + 1, self.loaded + count + 1)
        rows["next"][-1] = NONE
        self.loaded += count
        self._skip += count
        if self._skip == len(arrivals):
            self._fed.popleft()
            self._skip = 0
        self._look_ahead()

    def outcomes(self, first: int, end: int) -> ServedEvents:
        """Return a copy of the outcomes of the events first … end − 1."""
        rows = self.rows[first - self.base : end - self.base]
        return ServedEvents(first, rows["started_us"].copy(), rows["done_us"].copy(), rows["replica"].copy())

    def _look_ahead(self) -> None:
        self.next_us = int(self._fed[0].intended_us[self._skip]) if self._fed else NEVER

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

    def __init__(self, partitions: int, service: ServiceTimes, *, poll_events: int = 1, target_us: int = NEVER) -> None:
        """target_us: events that take longer are counted as late."""
        self._target_us = target_us
        self._late = np.zeros(0, np.int64)
        """Late events by replica, among the stored outcomes."""
        self._times = service
        common = (poll_events, service.slow_from_us, service.slow_until_us, 0, service.limit_each_us)
        self._service: Rows = np.array([(*common, gap_us) for gap_us in service.limit_gaps_us or (0,)], SERVICE)
        """The first row has the parameters of the loops. The others have the later shared limits."""
        self._partitions: Rows = np.zeros(partitions, PARTITION)
        for name in ("owner", "first", "last"):
            self._partitions[name] = NONE
        self._replicas: Rows = np.empty(0, REPLICA)
        self._events = Window(service)
        self._arrived = 0
        """Number of the first event that has not arrived."""
        self.now_us = self._newest_us = 0
        """Every event that starts before this time has started."""
        self._collected: list[ServedEvents] = []
        """Stored outcomes that were not taken. `_collected_until` is the event after them."""
        self._collected_until = self._taken = 0

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
        """Add the next events. Raises ValueError for events out of order, of the past, or of unknown partitions."""
        check_next(arrivals, earliest_us=max(self.now_us, self._newest_us), partitions=len(self._partitions))
        if len(arrivals):
            self._newest_us = int(arrivals.intended_us[-1])
            self._events.feed(arrivals)

    def produced(self) -> NDArray[np.int64]:
        """Return the number of events that have arrived (intended < now), by partition."""
        produced: NDArray[np.int64] = self._partitions["produced"].copy()
        return produced

    def take(self) -> ServedEvents:
        """Return the new outcomes of finished events, up to the first unfinished one."""
        self._collect()
        first, self._taken = self._taken, self._collected_until
        parts, self._collected = self._collected, []
        fields = ("started_us", "done_us", "replica")
        return ServedEvents(first, *(np.concatenate([getattr(part, name) for part in parts]) for name in fields))

    def late(self) -> NDArray[np.int64]:
        """Return the number of late events of each replica until now."""
        self._collect()
        rows = self._events.rows[self._collected_until - self._events.base : self._events.loaded - self._events.base]
        late = (rows["done_us"] <= self.now_us) & (rows["done_us"] - rows["intended_us"] > self._target_us)
        return self._late_with(rows["replica"][late])

    @abstractmethod
    def _collect(self) -> None:
        """Store the outcomes of finished events, so that their rows can be reused."""

    def _late_with(self, replicas: NDArray[np.int32]) -> NDArray[np.int64]:
        counts = np.bincount(replicas, minlength=len(self._replicas))
        counts[: len(self._late)] += self._late
        return counts

    def _store(self, served: ServedEvents) -> None:
        first, self._collected_until = self._collected_until, served.first + len(served.done_us)
        intended_us = self._events.rows[first - self._events.base : self._collected_until - self._events.base][
            "intended_us"
        ]
        self._late = self._late_with(served.replica[served.done_us - intended_us > self._target_us])
        self._collected.append(served)

    def _state(self) -> tuple[Rows, int, Rows, Rows]:
        return self._events.rows, self._events.base, self._replicas, self._partitions
