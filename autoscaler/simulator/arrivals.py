"""What comes when: events with their partitions, in chunks, so that a run may be larger than memory; timed actions."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count
from typing import Final

import numpy as np
from numpy.typing import NDArray

PIECE: Final = 1 << 15
"""Events handed to an engine at a time, about: what it then holds stays in the processor's cache."""


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
        """Return a workload of one chunk."""
        return cls(partitions, duration_s, (arrivals,))

    def __iter__(self) -> Iterator[Arrivals]:
        return iter(self.chunks)


class Feed:
    """Hands a workload to an engine in pieces, in order, and remembers the newest events for those who look back.

    Events with one intended time stay together.

    Raises ValueError where chunks are not in order, or name a time outside the workload.
    look_back_us: how long before the present moment `slots` may be asked about.
    """

    def __init__(self, workload: Workload, take: Callable[[Arrivals], None], *, look_back_us: int) -> None:
        self._workload = workload
        self._pieces = (piece for chunk in workload if len(chunk) for piece in self._cut(chunk))
        self._take = take
        self._look_back_us = look_back_us
        self._recent: deque[Arrivals] = deque()
        self._last_us = 0
        self._ahead = next(self._pieces, None)

    def until(self, until_us: int) -> None:
        """Hand out every piece that holds events before `until_us`."""
        while self._ahead is not None and self._ahead.intended_us[0] < until_us:
            self._take(self._ahead)
            self._recent.append(self._ahead)
            self._ahead = next(self._pieces, None)
        while self._recent and self._recent[0].intended_us[-1] < until_us - self._look_back_us:
            self._recent.popleft()

    def slots(self, edges_us: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return events by slot and partition, shape (slots, partitions): slot i is [edges_us[i], edges_us[i + 1])."""
        partitions, count = self._workload.partitions, len(edges_us) - 1
        cells = np.zeros(count * partitions, dtype=np.int64)
        for piece in self._recent:
            low, high = piece.intended_us.searchsorted((edges_us[0], edges_us[-1]))
            if low < high:
                slot = edges_us.searchsorted(piece.intended_us[low:high], side="right") - 1
                cells += np.bincount(slot * partitions + piece.partition[low:high], minlength=len(cells))
        return cells.reshape(count, partitions)

    def _cut(self, chunk: Arrivals) -> Iterator[Arrivals]:
        first_us, last_us = int(chunk.intended_us[0]), int(chunk.intended_us[-1])
        if first_us < self._last_us or last_us >= self._workload.duration_s * 1e6:
            raise ValueError(
                f"a chunk of events from {first_us / 1e6} to {last_us / 1e6} s does not follow {self._last_us / 1e6} s "
                f"or lies outside a run of {self._workload.duration_s} s"
            )
        self._last_us = last_us
        low = 0
        while low < len(chunk):
            last = min(low + PIECE, len(chunk)) - 1
            high = int(chunk.intended_us.searchsorted(chunk.intended_us[last], side="right"))
            yield Arrivals(chunk.intended_us[low:high], chunk.partition[low:high])
            low = high


class Agenda:
    """Timed actions, in order of time, then of entry. Actions may add further ones, also for now."""

    def __init__(self) -> None:
        self._entries: list[tuple[int, int, Callable[[], None]]] = []
        self._order = count()

    def at(self, at_us: int, action: Callable[[], None]) -> None:
        """Carry out `action` at `at_us` (µs since the start). What lost its point meanwhile does nothing then."""
        heappush(self._entries, (at_us, next(self._order), action))

    def next_us(self) -> int | None:
        """Return when the next action is due; None when nothing is to be done."""
        return self._entries[0][0] if self._entries else None

    def pop(self) -> Callable[[], None]:
        """Take out the next action."""
        return heappop(self._entries)[2]
