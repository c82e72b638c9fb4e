"""What the compiled engines keep of events, replicas and partitions: arrays of records, which compiled loops can use.

Only a stretch of the run is kept, short enough for the processor's cache.
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
"""Events."""

EVENT: Final = np.dtype(
    [
        ("intended_us", np.int64),
        ("demand_us", np.float64),
        ("started_us", np.int64),
        ("done_us", np.int64),  # NEVER until it has been assigned
        ("next", np.int64),  # the next one in its chain
        ("partition", np.int32),
        ("replica", np.int32),
        ("polls", np.bool_),  # it is the first of a batch
    ],
    align=True,
)
REPLICA: Final = np.dtype(
    [
        ("speed", np.float64),
        ("slow_factor", np.float64),  # its own, of the slow time
        ("free_us", np.int64),  # nothing more starts before
        ("first", np.int64),  # chain of events that are not committed; in a pool the one that it acquired
        ("last", np.int64),
        ("waiting", np.int64),  # under a shared limit, the first event of the chain that has not begun
        ("busy_us", np.int64),  # and what its events took, the wait for their turn included
        ("polled_us", np.int64),  # when the newest batch was polled
        ("room", np.int64),  # events that it can still hold; 0: it is closed
        ("done_us", np.int64),  # end of the newest committed batch; in a pool, event
        ("concerned", np.bool_),  # by a command that has not been carried out
        ("alive", np.bool_),
    ],
    align=True,
)
PARTITION: Final = np.dtype(
    [
        ("owner", np.int64),
        ("first", np.int64),  # chain of events that nobody serves
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
        ("open_us", np.int64),  # under a shared limit, nothing begins before
        ("each_us", np.int64),
        ("gap_us", np.int64),  # from one beginning to the next in this row's stretch of each_us; 0: no limit
    ],
    align=True,
)


@dataclass(frozen=True, slots=True, eq=False)
class ServedEvents:
    """Outcome of events first … first + len − 1, by event number."""

    first: int
    started_us: NDArray[np.int64]
    done_us: NDArray[np.int64]
    replica: NDArray[np.int32]


class Window:
    """Rows of the events base … loaded − 1; those after them wait as they were fed."""

    def __init__(self, service: ServiceTimes) -> None:
        self._service = service
        self._fed: deque[Arrivals] = deque()
        self._skip = 0
        """Events at the start of the first chunk fed that were loaded."""
        self.rows: Rows = np.empty(0, EVENT)
        self.base = 0
        self.loaded = 0
        self.next_us = NEVER
        """When the first event that was not loaded arrives."""

    def feed(self, arrivals: Arrivals) -> None:
        """Keep a chunk, one event or more, until it is its turn."""
        self._fed.append(arrivals)
        if len(self._fed) == 1:
            self._look_ahead()

    def load(self, oldest: int) -> None:
        """Load the next events, each linked to its successor; those before `oldest` make room if need be."""
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
        """Return a copy of what became of the events first … end − 1."""
        rows = self.rows[first - self.base : end - self.base]
        return ServedEvents(first, rows["started_us"].copy(), rows["done_us"].copy(), rows["replica"].copy())

    def _look_ahead(self) -> None:
        self.next_us = int(self._fed[0].intended_us[self._skip]) if self._fed else NEVER

    def _make_room(self, count: int, oldest: int) -> None:
        if self.loaded - self.base + count <= len(self.rows):
            return
        kept = self.rows[oldest - self.base : self.loaded - self.base]
        if 2 * (len(kept) + count) > len(self.rows):
            self.rows = np.empty(2 * (len(kept) + count), EVENT)
        self.rows[: len(kept)] = kept
        self.base = oldest


class EventServer(ABC):
    """Numbered replicas and partitions, and the events that they serve. Time only moves forward.

    Commands and questions refer to the moment that was advanced to. It holds what was fed and has not arrived, what is
    unfinished, and the outcomes that were not taken.
    """

    def __init__(self, partitions: int, service: ServiceTimes, *, poll_events: int = 1, target_us: int = NEVER) -> None:
        """target_us: events that take longer are counted as late."""
        self._target_us = target_us
        self._late = np.zeros(0, np.int64)
        """Of the events whose outcomes were put aside, by replica."""
        self._times = service
        common = (poll_events, service.slow_from_us, service.slow_until_us, 0, service.limit_each_us)
        self._service: Rows = np.array([(*common, gap_us) for gap_us in service.limit_gaps_us or (0,)], SERVICE)
        """In the first row all that loops need to know of how work is done; in others the later shared limits."""
        self._partitions: Rows = np.zeros(partitions, PARTITION)
        for name in ("owner", "first", "last"):
            self._partitions[name] = NONE
        self._replicas: Rows = np.empty(0, REPLICA)
        self._events = Window(service)
        self._arrived = 0
        """Number of the first event that has not arrived."""
        self.now_us = self._newest_us = 0
        """Everything that starts before this moment has started."""
        self._collected: list[ServedEvents] = []
        """Outcomes that wait to be taken; `_collected_until` is the event after them."""
        self._collected_until = self._taken = 0

    def add_replica(self) -> int:
        """Return the number of a new replica; numbers grow from 0. It serves nothing yet."""
        number = len(self._replicas)
        added = np.zeros(1, REPLICA)
        added["speed"] = self._times.settings.speed_of(number)
        added["slow_factor"] = self._times.settings.slow_factor_of(number)
        added["free_us"], added["alive"] = self.now_us, True
        added["first"] = added["last"] = added["waiting"] = NONE
        self._replicas = np.concatenate([self._replicas, added])
        return number

    def feed(self, arrivals: Arrivals) -> None:
        """Take in the next events. Raises ValueError for events out of order, of the past, or of no partition."""
        check_next(arrivals, earliest_us=max(self.now_us, self._newest_us), partitions=len(self._partitions))
        if len(arrivals):
            self._newest_us = int(arrivals.intended_us[-1])
            self._events.feed(arrivals)

    def produced(self) -> NDArray[np.int64]:
        """Return events that arrived before now (intended < now), by partition."""
        produced: NDArray[np.int64] = self._partitions["produced"].copy()
        return produced

    def take(self) -> ServedEvents:
        """Return the outcome of events that are finished and were not taken before, as far as they are consecutive."""
        self._collect()
        first, self._taken = self._taken, self._collected_until
        parts, self._collected = self._collected, []
        fields = ("started_us", "done_us", "replica")
        return ServedEvents(first, *(np.concatenate([getattr(part, name) for part in parts]) for name in fields))

    def late(self) -> NDArray[np.int64]:
        """Return how many events each replica finished too late until now."""
        self._collect()
        rows = self._events.rows[self._collected_until - self._events.base : self._events.loaded - self._events.base]
        late = (rows["done_us"] <= self.now_us) & (rows["done_us"] - rows["intended_us"] > self._target_us)
        return self._more_late(rows["replica"][late])

    @abstractmethod
    def _collect(self) -> None:
        """Put the outcomes of what has been finished aside, so that its rows may be used again."""

    def _more_late(self, replicas: NDArray[np.int32]) -> NDArray[np.int64]:
        counts = np.bincount(replicas, minlength=len(self._replicas))
        counts[: len(self._late)] += self._late
        return counts

    def _put_aside(self, served: ServedEvents) -> None:
        first, self._collected_until = self._collected_until, served.first + len(served.done_us)
        intended_us = self._events.rows[first - self._events.base : self._collected_until - self._events.base][
            "intended_us"
        ]
        self._late = self._more_late(served.replica[served.done_us - intended_us > self._target_us])
        self._collected.append(served)

    def _state(self) -> tuple[Rows, int, Rows, Rows]:
        return self._events.rows, self._events.base, self._replicas, self._partitions
