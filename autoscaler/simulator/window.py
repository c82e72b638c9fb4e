"""The events that the fast engine works on: a stretch of the run, short enough for the processor's cache."""

from collections import deque
from typing import Final

import numpy as np

from autoscaler.simulator.arrivals import Arrivals
from autoscaler.simulator.engine import Served
from autoscaler.simulator.rows import EVENT, NEVER, NONE, Rows
from autoscaler.simulator.service import BLOCK, ServiceTimes

LOADED_AT_ONCE: Final = 2 * BLOCK


class Window:
    """Rows of the events base … loaded − 1; those after them wait as they were fed."""

    def __init__(self, service: ServiceTimes) -> None:
        self._service = service
        self._fed: deque[Arrivals] = deque()
        self._skip = 0
        """Events at the start of the first chunk fed that were loaded."""
        self.rows: Rows = np.empty(0, EVENT)
        """Event e lies in row e − base."""
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

    def outcomes(self, first: int, end: int) -> Served:
        """Return a copy of what became of the events first … end − 1."""
        rows = self.rows[first - self.base : end - self.base]
        return Served(first, rows["started_us"].copy(), rows["done_us"].copy(), rows["replica"].copy())

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
