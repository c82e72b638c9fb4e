"""Arrivals of a simulated run, in chunks, so that the run may exceed the memory; and the agenda of timed actions."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count
from typing import Final

import numpy as np
from numpy.typing import NDArray

PIECE: Final = 1 << 15
"""Approximate number of events that an engine gets at a time, so that they fit into the processor's cache."""


@dataclass(frozen=True, slots=True, eq=False)
class Arrivals:
    """Events in order of time. Both arrays have one entry per event."""

    intended_us: NDArray[np.int64]
    """Intended time, µs since the start of the run, never decreasing."""
    partition: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.intended_us)


@dataclass(frozen=True, slots=True, eq=False)
class Workload:
    """Events of a run as successive chunks. A chunk contains all events of [its start, the next one's start)."""

    partitions: int
    duration_s: float
    """Decisions and costs cover [0, duration_s). Events that are unfinished then are drained."""
    chunks: Iterable[Arrivals]
    """Iterated once per run. Chunk i ends before chunk i + 1 starts."""

    @classmethod
    def whole(cls, arrivals: Arrivals, *, partitions: int, duration_s: float) -> "Workload":
        """Return a workload of one chunk."""
        return cls(partitions, duration_s, (arrivals,))


class Feed:
    """Feeds a workload to an engine piece by piece, in order, and retains recent events for `slots`.

    Events with the same intended time stay in one piece.
    look_back_us: how far `slots` may reach into the past, µs.
    Raises ValueError if chunks are not in order, or have a time or a partition outside the workload.
    """

    def __init__(self, workload: Workload, take: Callable[[Arrivals], None], *, look_back_us: int) -> None:
        self._workload = workload
        self._pieces = (piece for chunk in workload.chunks if len(chunk) for piece in self._cut(chunk))
        self._take, self._look_back_us = take, look_back_us
        self._recent: deque[Arrivals] = deque()
        self._last_us = 0
        self._ahead = next(self._pieces, None)

    def feed_until(self, until_us: int) -> None:
        """Feed every piece that has events before `until_us`."""
        while self._ahead is not None and self._ahead.intended_us[0] < until_us:
            self._take(self._ahead)
            self._recent.append(self._ahead)
            self._ahead = next(self._pieces, None)
        while self._recent and self._recent[0].intended_us[-1] < until_us - self._look_back_us:
            self._recent.popleft()

    def slots(self, edges_us: NDArray[np.int64]) -> NDArray[np.int64]:
        """Count events, shape (slots, partitions). Slot i is [edges_us[i], edges_us[i + 1])."""
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
                f"events from {first_us / 1e6} to {last_us / 1e6} s cannot be added: they must not begin before the "
                f"last event ({self._last_us / 1e6} s) and must end before the run does ({self._workload.duration_s} s)"
            )
        if not 0 <= chunk.partition.min() <= chunk.partition.max() < self._workload.partitions:
            raise ValueError(f"events have partitions outside 0 … {self._workload.partitions - 1}")
        self._last_us = last_us
        low = 0
        while low < len(chunk):
            last = min(low + PIECE, len(chunk)) - 1
            high = int(chunk.intended_us.searchsorted(chunk.intended_us[last], side="right"))
            yield Arrivals(chunk.intended_us[low:high], chunk.partition[low:high])
            low = high


class Agenda:
    """Timed actions, in order of time, then of insertion. Actions may add actions, even for the present time."""

    def __init__(self) -> None:
        self._entries: list[tuple[int, int, Callable[[], None]]] = []
        self._order = count()

    def at(self, at_us: int, action: Callable[[], None]) -> None:
        """Schedule `action` at `at_us`, µs since the start. An action that is obsolete by then must do nothing."""
        heappush(self._entries, (at_us, next(self._order), action))

    def next_us(self) -> int | None:
        """Return the time of the next action, µs; None if there is none."""
        return self._entries[0][0] if self._entries else None

    def pop(self) -> Callable[[], None]:
        """Remove and return the next action."""
        return heappop(self._entries)[2]
