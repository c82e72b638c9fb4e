"""How events lay between two ticks: end offsets that were sampled in between, cut into slots."""

from collections import deque
from collections.abc import Sequence
from itertools import pairwise
from math import floor
from typing import Final

import numpy as np

from autoscaler.model import RecentArrivals

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
    """Readings of all end offsets with their times."""

    def __init__(self) -> None:
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
        return not self._readings or slot_at(now_s) > slot_at(self._readings[-1][0])

    def recent(self, until_s: float, interval_s: float) -> RecentArrivals | None:
        """Return events by slot and partition over the interval that ended at `until_s`, when the last reading was.

        What arrived between two readings counts for the later one's slot: a burst is never taken apart. What came after
        the end of the last slot counts for it, too. None where the readings do not reach back so far.
        """
        slots = max(1, round(interval_s / SLOT_S))
        first = slot_at(until_s) - slots + 1
        if len(self._readings) < 2 or slot_at(self._readings[0][0]) >= first:
            return None
        counts = np.zeros((slots, len(self._readings[-1][1])), np.int64)
        for (_, before), (at_s, after) in pairwise(self._readings):
            if slot_at(at_s) >= first:
                counts[min(slot_at(at_s) - first, slots - 1)] += np.subtract(after, before)
        return RecentArrivals(SLOT_S, counts)
