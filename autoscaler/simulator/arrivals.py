"""What is served: events with their times and partitions, in chunks, so that a run may be larger than memory."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Arrivals:
    """Event number k in row k. One entry per event in both arrays."""

    intended_us: NDArray[np.int64]
    """µs after the start of the run, never falling."""
    partition: NDArray[np.int32]

    def __post_init__(self) -> None:
        if len(self.intended_us) != len(self.partition):
            raise ValueError(f"{len(self.intended_us)} times for {len(self.partition)} partitions of events")
        if len(self.intended_us) and (self.intended_us[0] < 0 or (np.diff(self.intended_us) < 0).any()):
            raise ValueError("intended times must start at 0 or later and never fall")

    def __len__(self) -> int:
        return len(self.intended_us)


def check_next(arrivals: Arrivals, *, earliest_us: int, partitions: int) -> None:
    """Raise ValueError for events before `earliest_us`, which has been, or of partitions that do not exist."""
    if not len(arrivals):
        return
    if arrivals.intended_us[0] < earliest_us:
        raise ValueError(f"an event at {arrivals.intended_us[0]} µs comes too late: {earliest_us} µs has been")
    if not 0 <= arrivals.partition.min() <= arrivals.partition.max() < partitions:
        raise ValueError(f"events name partitions outside 0 … {partitions - 1}")


@dataclass(frozen=True, slots=True, eq=False)
class Workload:
    """A run's events as successive chunks; a chunk holds all events of [its start, the next one's start)."""

    partitions: int
    duration_s: float
    """[0, duration_s) is decided and paid for; what is left then is drained."""
    chunks: Iterable[Arrivals]
    """Iterated once for each run; chunk i ends before chunk i + 1 starts."""

    @classmethod
    def whole(cls, arrivals: Arrivals, *, partitions: int, duration_s: float) -> "Workload":
        """Return a workload of one chunk. Raises ValueError for an event outside the run or its partitions."""
        if len(arrivals) and arrivals.intended_us[-1] >= duration_s * 1e6:
            raise ValueError(f"an event at {arrivals.intended_us[-1] / 1e6} s lies outside a run of {duration_s} s")
        if len(arrivals) and not 0 <= arrivals.partition.min() <= arrivals.partition.max() < partitions:
            raise ValueError(f"events name partitions outside 0 … {partitions - 1}")
        return cls(partitions, duration_s, (arrivals,))

    def __iter__(self) -> Iterator[Arrivals]:
        return iter(self.chunks)
