"""Hands a workload to the engine, chunk by chunk, and remembers the newest events for those who look back."""

from collections import deque
from collections.abc import Callable, Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from autoscaler.simulator.arrivals import Arrivals, Workload

PIECE: Final = 1 << 15
"""Events handed out at a time, about: what an engine then holds stays in the processor's cache."""


class Feed:
    """Pieces of chunks, in order. Events with one intended time stay together.

    Raises ValueError where chunks are not in order, or name a partition or a time outside the workload.
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
        """To be handed out next."""

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
        if not 0 <= chunk.partition.min() <= chunk.partition.max() < self._workload.partitions:
            raise ValueError(f"events name partitions outside 0 … {self._workload.partitions - 1}")
        self._last_us = last_us
        low = 0
        while low < len(chunk):
            last = min(low + PIECE, len(chunk)) - 1
            high = int(chunk.intended_us.searchsorted(chunk.intended_us[last], side="right"))
            yield Arrivals(chunk.intended_us[low:high], chunk.partition[low:high])
            low = high
