"""Outcomes of the events, collected during the run, so that a long run need not fit into memory twice."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from autoscaler.simulator.rows import Events

Times = NDArray[np.int64]
MAX_SHORT_US: Final = 1 << 32
"""Latencies below this (71 minutes) are stored in 4 bytes if only latencies are kept."""


class Outcomes:
    """Collects finished events. keep: all data; else only latencies."""

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

    def latency_us(self) -> Times:
        """Return the latency of each event, by event number: completion time minus intended arrival time, µs."""
        return np.concatenate(self._latencies)

    def events(self) -> Events:
        """Return all events; empty if they are not kept."""
        return Events.joined(self._kept)
