"""From offsets to what policies reason on: λ and lag of each partition, and how events lay between two ticks."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from math import floor
from typing import Final

import numpy as np

from autoscaler.live.offsets import OffsetReader, PartitionOffsets
from autoscaler.model import PartitionLoad, RecentArrivals
from autoscaler.ports import NotReadyError
from contracts.clock import wall_ahead_s

SLOT_S: Final = 0.1
"""Resolution. A burst and an even stream of one second differ clearly, and ten questions a second cost the broker
little."""
KEPT: Final = 2000
"""Readings remembered at most: a decision interval of a minute, three times over."""


def slot_at(at_s: float) -> int:
    """Return the number of the slot that ended last. They end in the middle between tenths of a second.

    Loads tend to begin bursts at whole seconds: an end there would cut each burst in two, and two halves look harmless.
    """
    return floor(at_s / SLOT_S - 0.5)


class ArrivalSamples:
    """End offsets that were sampled between two ticks, with their times, to be cut into slots."""

    def __init__(self) -> None:
        self.ahead_s = 0.0
        """By how much the wall clock, on whose beat slots lie, is ahead of the clock of the readings."""
        self._readings: deque[tuple[float, tuple[int, ...]]] = deque(maxlen=KEPT)

    def note(self, at_s: float, ends: Sequence[int]) -> None:
        """Take in one reading. One that goes back, or counts other partitions, makes those before it worthless."""
        if self._readings:
            last_s, last = self._readings[-1]
            if at_s <= last_s:
                return
            if len(last) != len(ends) or any(now < before for now, before in zip(ends, last, strict=True)):
                self._readings.clear()
        self._readings.append((at_s, tuple(ends)))

    def due(self, now_s: float) -> bool:
        """Tell whether a slot has ended since the last reading."""
        return not self._readings or self._slot(now_s) > self._slot(self._readings[-1][0])

    def recent(self, until_s: float, interval_s: float) -> RecentArrivals | None:
        """Return events by slot and partition over the interval that ended at `until_s`, when the last reading was.

        What arrived between two readings counts for the later one's slot: a burst is never taken apart. What came after
        the end of the last slot counts for it, too. None where the readings do not reach back so far.
        """
        slots = max(1, round(interval_s / SLOT_S))
        first = self._slot(until_s) - slots + 1
        if len(self._readings) < 2 or self._slot(self._readings[0][0]) >= first:
            return None
        counts = np.zeros((slots, len(self._readings[-1][1])), np.int64)
        for (_, before), (at_s, after) in pairwise(self._readings):
            if (slot := self._slot(at_s)) >= first:
                counts[min(slot - first, slots - 1)] += np.subtract(after, before)
        return RecentArrivals(SLOT_S, counts)

    def _slot(self, at_s: float) -> int:
        return slot_at(at_s + self.ahead_s)


class LoadReader:
    """Reads offsets once for each call and remembers what λ needs from call to call."""

    def __init__(self, offsets: OffsetReader, ahead_s: Callable[[], float] = wall_ahead_s) -> None:
        self._offsets = offsets
        self._ahead_s = ahead_s
        self._rates: dict[int, float] = {}
        self._samples = ArrivalSamples()
        self._last: tuple[float, tuple[PartitionOffsets, ...]] | None = None
        self._recent: RecentArrivals | None = None

    @property
    def partitions(self) -> int:
        """How many partitions the topic has, as last seen; those of which nothing else is known yet included."""
        return self._offsets.partitions

    def count(self) -> int:
        """Ask how many partitions the topic has; without an answer, what was known before stands."""
        with suppress(NotReadyError):
            return self._offsets.count()
        return self.partitions

    def rates(self) -> Mapping[int, float]:
        """Return λ of the partitions for which it is known, events/s."""
        return self._rates

    def sample(self, now_s: float) -> None:
        """Look at the end offsets between two ticks, where that is due. What cannot be read is left out."""
        if self._samples.due(now_s):
            with suppress(NotReadyError):
                self._samples.note(*self._offsets.ends())

    def recent(self) -> RecentArrivals | None:
        """Return how events lay in the interval that the last `read` closed; None where that is not known."""
        return self._recent

    def read(self) -> tuple[float, tuple[PartitionLoad, ...]]:
        """Return when the end offsets were read (seconds, by the offsets' clock), and the load of every partition.

        Raises NotReadyError naming what is unknown: an offset, or a λ that has only one reading to go by.
        """
        at_s, partitions = self._offsets.read()
        self._samples.ahead_s = self._ahead_s()
        last, self._last = self._last, (at_s, partitions)
        self._samples.note(at_s, [one.end for one in partitions])
        self._recent, self._rates = None, {}
        if last is not None and at_s > last[0]:
            passed_s = at_s - last[0]
            self._recent = self._samples.recent(at_s, passed_s)
            pairs = enumerate(zip(last[1], partitions, strict=False))  # new ones have one reading only
            self._rates = {
                number: (now.end - before.end) / passed_s for number, (before, now) in pairs if now.end >= before.end
            }
        if unknown := [number for number in range(len(partitions)) if number not in self._rates]:
            listed = ", ".join(map(str, unknown[:5])) + (", …" if len(unknown) > 5 else "")
            raise NotReadyError(f"arrival rate of partition {listed}: it takes two readings of the end offset")
        loads = (PartitionLoad(number, self._rates[number], one.lag) for number, one in enumerate(partitions))
        return at_s, tuple(loads)
