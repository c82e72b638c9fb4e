"""What serves events: replicas as numbered FIFO servers. Time only moves forward, in whole microseconds.

Two implementations give the same numbers to the last event: `reference.ReferenceEngine`, to be read, and
`fast.FastEngine`, to be run.

Rules of both:
- A replica serves one event at a time. When free at t it takes, of the events that arrived (intended ≤ t) in the
  partitions attached to it, the one with the smallest number; with none it waits for the next arrival.
- `attach` and `detach` at t hold for every event whose service has not started before t; one in service is finished by
  the replica that began it. A command at t is carried out before anything starts at t. Events of a partition that is
  attached nowhere wait; order within a partition is always kept, for the next owner is attached later than that.
- Work is polled in batches: a free replica with work polls up to `poll_events` of the events that have arrived and
  commits them all when the last of them is finished. A command that gives a replica a partition or takes one from it
  closes its batch: what was polled and has not begun is polled again. poll_events = 1: each event is committed when it
  is finished.
- Service of event k by replica r, started at s, takes `ServiceTimes.service_us(k, r, s)` µs, at least 1.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from autoscaler.simulator.arrivals import Arrivals

NOBODY: Final = -1
"""In place of a replica's number."""


@dataclass(frozen=True, slots=True, eq=False)
class Served:
    """Outcome of events first … first + len − 1, by event number."""

    first: int
    started_us: NDArray[np.int64]
    done_us: NDArray[np.int64]
    replica: NDArray[np.int32]
    """Number of the replica that served it."""

    @classmethod
    def joined(cls, parts: Sequence["Served"], first: int) -> "Served":
        """Return parts that follow each other as one; `first` is theirs, or the next event's where there are none."""
        return cls(
            first,
            np.concatenate([part.started_us for part in parts]),
            np.concatenate([part.done_us for part in parts]),
            np.concatenate([part.replica for part in parts]),
        )


class Engine(Protocol):
    """Numbered replicas and partitions. Commands and questions refer to the moment that was advanced to."""

    @property
    def now_us(self) -> int:
        """Everything that starts before this moment has started."""
        ...

    def add_replica(self, speed: float = 1.0) -> int:
        """Return the number of a new replica; numbers grow from 0. It serves nothing until something is attached.

        speed: its service times are divided by it.
        """
        ...

    def feed(self, arrivals: Arrivals) -> None:
        """Take in the next events; none of them before any fed earlier, none before `now_us`."""
        ...

    def advance(self, until_us: int) -> None:
        """Serve everything that starts before `until_us`; that becomes `now_us`."""
        ...

    def attach(self, partition: int, replica: int) -> None:
        """From now on `replica` serves `partition`."""
        ...

    def detach(self, partition: int) -> None:
        """From now on nobody serves `partition`."""
        ...

    def owner(self, partition: int) -> int:
        """Return the replica that `partition` is attached to, or NOBODY."""
        ...

    def in_service_until_us(self, partition: int) -> int:
        """Return when the event of `partition` that is in service now is finished; `now_us` if there is none."""
        ...

    def produced(self) -> NDArray[np.int64]:
        """Return events that arrived before now (intended < now), by partition."""
        ...

    def committed(self) -> NDArray[np.int64]:
        """Return events committed at or before now, by partition."""
        ...

    def kill(self, replica: int) -> None:
        """End `replica` now: what it served and had not committed is to be served again. Its partitions are detached.

        Such an event's outcome is that of its first completion, as in the definition of latency; if it was finished
        before, only the repetition costs time. One in service was not finished.
        """
        ...

    def drain(self) -> int:
        """Serve all that is left; return when the last event was finished, µs. Attachments must exist for that."""
        ...

    def take(self) -> Served:
        """Return the outcome of events that are finished and were not taken before, as far as they are consecutive."""
        ...
