"""The arrivals of the last intervals, by slot: which events wait, and when bursts arrive."""

from collections import deque
from math import ceil
from typing import Final

import numpy as np
from numpy.typing import NDArray

from autoscaler.model import GroupObservation, RecentArrivals

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

REMEMBERED: Final = 300
"""Intervals that are remembered, fewer if they have more cells than 13 times MAX_CELLS."""
MAX_CELLS: Final = 300_000
"""Slots × partitions of all paths. Longer horizons have fewer paths."""
FEW: Final = 0.05
"""Share of the fullest slot up to which the events of a slot are no part of a burst."""
RECENT: Final = 8
"""Intervals that decide whether events arrive in bursts, and in which part of a slot."""


class Window:
    """The newest rows of a series, as one array."""

    def __init__(self, length: int, shape: tuple[int, ...]) -> None:
        self._length, self._end = length, 0
        self._buffer = np.zeros((2 * length, *shape))

    def append(self, row: Floats) -> None:
        """Add a row. The oldest row leaves if the window is full."""
        if self._end == len(self._buffer):
            self._buffer[: self._length] = self._buffer[self._length :]
            self._end = self._length
        self._buffer[self._end] = row
        self._end += 1

    @property
    def rows(self) -> Floats:
        """The rows, oldest first."""
        return self._buffer[max(0, self._end - self._length) : self._end]


class ArrivalHistory:
    """Events by slot and partition of the last decision intervals."""

    def __init__(self) -> None:
        self._window = Window(1, (0, 0))
        self._bursts = Window(1, (0,))
        """For each interval 1 for slots in which a burst begins, else 0; not a number: a stream of events."""
        self._ended_in_burst = False
        self._begin_s: deque[float] = deque(maxlen=RECENT)
        self._last_s = 0.0
        self._length = self._unusual = 0
        """Slots of the last tick, and how many ticks in a row had this number, if it is not that of an interval."""
        self.most = 0
        """Maximum number of remembered intervals."""
        self.slot_s = 0.1
        self.begun = np.zeros((0, 0))
        """Arrivals of the present, unfinished interval, shape (slots, partitions)."""

    @property
    def intervals(self) -> Floats:
        """The remembered intervals, oldest first, shape (intervals, slots, partitions)."""
        return self._window.rows

    @property
    def last(self) -> Floats:
        """The last interval, shape (slots, partitions)."""
        return np.asarray(self._window.rows[-1])

    @property
    def interval_s(self) -> float:
        """Length of an interval, in whole slots."""
        return float(self.intervals.shape[1] * self.slot_s)

    @property
    def begin_s(self) -> float:
        """Earliest recent offset of arrivals within their slot, seconds."""
        return min(self._begin_s) if self._begin_s else 0.0

    @property
    def in_bursts(self) -> bool:
        """Whether events have arrived only in bursts lately."""
        return bool(self._bursts.rows[-RECENT:].sum() > 0)

    def observe(self, observation: GroupObservation) -> Floats:
        """Add one interval. Return its events by partition."""
        recent, slots = observation.recent, self._slots_of(observation)
        if recent is not None and slots.any():
            self._begin_s.append(recent.begin_s)
        self._last_s, self.begun = observation.at_s, slots[:0]
        known, whole, partitions = self.intervals.shape
        self._unusual = 0 if len(slots) == whole else self._unusual + 1 if len(slots) == self._length else 1
        self._length = len(slots)
        if slots.shape[1] != partitions or self._unusual >= (RECENT if known >= RECENT else 2):
            self.most = max(RECENT, min(REMEMBERED, 13 * MAX_CELLS // max(1, slots.size)))
            self._window, self._bursts = Window(self.most, slots.shape), Window(self.most, slots.shape[:1])
            self._unusual, whole = 0, len(slots)
        interval = _fitted(slots, whole)
        self._window.append(interval)
        many = (by_slot := interval.sum(axis=1)) > FEW * by_slot.max()
        self._bursts.append(_bursts_in(by_slot, many, continues=self._ended_in_burst))
        self._ended_in_burst = bool(many[-1])
        return np.asarray(self.last.sum(axis=0))

    def begin(self, recent: RecentArrivals | None) -> bool:
        """Add the arrivals before a decision between ticks. Return False if they are unknown."""
        if recent is None or not len(self.intervals) or recent.counts.shape[1] != self.intervals.shape[2]:
            return False
        self.begun = np.concatenate((self.begun, np.asarray(recent.counts, np.float64)))
        return True

    def normalised(self, values: Floats) -> Floats | None:
        """Return the values of the last interval, scaled to the usual number of bursts; None if it has no burst."""
        if not self.in_bursts:
            return values
        bursts = self._bursts.rows
        count, whole = bursts[-1].sum(), bursts.shape[1]
        gaps = np.diff(np.flatnonzero(bursts > 0))
        # the median gap, because a silence must not make later bursts look rare
        return np.asarray(values * (whole / np.median(gaps) / count if len(gaps) else 1.0)) if count else None

    def moments(self, intervals: int) -> Ints:
        """Return past slots after which arrivals may have been similar to those that follow now.

        The next `intervals` after each slot are known. The slots are the beginnings of intervals. If events arrive in
        bursts, they are the slots at which the last burst was as long ago as it is now, so that a path keeps the phase
        of regular bursts.
        """
        known, whole = self.intervals.shape[:2]
        last = (known - intervals) * whole
        ticks = np.arange(0, last + 1, whole)
        if not self.in_bursts:
            return ticks
        bursts, now = np.flatnonzero(self._bursts.rows > 0), known * whole
        after = bursts + (now - bursts[-1])
        found = after[(after <= np.append(bursts[1:], now)) & (after <= last)]
        return found if len(found) >= RECENT else ticks

    def waiting(self, lag: Floats, reach_s: float) -> Floats:
        """Return the waiting events by age and partition, newest slot last: the newest `lag` events of each partition.

        The rows cover one interval and `reach_s`. Older events are in the first row.
        """
        whole = self.intervals.shape[1]
        slots = whole + ceil(reach_s / self.slot_s) + 1
        newest = self.intervals[-ceil(slots / whole) :].reshape(-1, len(lag))
        arrived = np.concatenate((newest, self.begun))[-slots:]
        behind = np.cumsum(arrived[::-1], axis=0)[::-1]  # events of this slot and all later ones
        waits = np.clip(lag - (behind - arrived), 0.0, arrived)
        waits[0] += np.maximum(0.0, lag - behind[0])
        return np.asarray(waits)

    def _slots_of(self, observation: GroupObservation) -> Floats:
        recent = observation.recent
        if recent is not None and len(recent.counts):
            self.slot_s, slots = recent.slot_s, np.asarray(recent.counts, np.float64)
            return np.concatenate((self.begun, slots)) if self.begun.shape[1] == slots.shape[1] else slots
        elapsed_s = observation.at_s - self._last_s if self._last_s else 1.0
        rates = np.array([load.arrival_rate for load in observation.partitions])
        slots = np.zeros((max(1, round(elapsed_s / self.slot_s)), len(rates)))
        slots[-1] = rates * elapsed_s  # the worst case: all events of the interval arrived at once
        return slots


def _fitted(slots: Floats, whole: int) -> Floats:
    """Return the newest interval, of `whole` slots. A tick may be early or late, or earlier ones were missed."""
    surplus = len(slots) - whole
    if surplus >= whole / 2:
        return slots[surplus:]
    if surplus > 0:
        return np.concatenate((slots[: surplus + 1].sum(axis=0, keepdims=True), slots[surplus + 1 :]))
    return np.concatenate((np.zeros((-surplus, slots.shape[1])), slots))


def _bursts_in(by_slot: Floats, many: Flags, *, continues: bool) -> Floats:
    """Return 1 for the first slot of each burst; not a number if events arrive between bursts, too.

    A burst may lie in two slots, because a reading of the offsets may divide it. continues: the last slot before these
    has a burst.
    """
    before = np.append(continues, many[:-1])
    firsts = np.flatnonzero(many & ~before)
    sizes = np.add.reduceat(by_slot, firsts) if len(firsts) else np.zeros(0)
    is_long = (many & before & np.append(False, before[:-1])).any()
    only = 4 * len(firsts) <= len(by_slot) and not is_long and (sizes > 0.5 * sizes.max(initial=0.0)).all()
    return np.asarray(np.where(only, many & ~before, np.nan))
