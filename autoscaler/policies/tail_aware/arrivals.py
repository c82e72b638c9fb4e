"""The arrivals of the last intervals, by slot, and the paths: arrivals that may follow, as after similar moments."""

from collections import deque
from math import ceil
from typing import Final

import numpy as np

from autoscaler.estimation.forecasts import Forecasts
from autoscaler.jit import Flags, Floats, Ints, compiled
from autoscaler.model import GroupObservation, RecentArrivals
from autoscaler.policies.tail_aware.queues import Paths, backlogs

REMEMBERED: Final = 300
"""Intervals that are remembered, fewer if they have more cells than 13 times MAX_CELLS."""
MAX_CELLS: Final = 300_000
"""Slots × partitions of all paths. Longer horizons have fewer paths."""
FEW: Final = 0.05
"""Share of the fullest slot up to which the events of a slot are no part of a burst."""
RECENT: Final = 8
"""Intervals that decide whether events arrive in bursts, and in which part of a slot."""
FADING: Final = 0.99
"""Factor on the weight of a moment for each later interval."""
SIMILAR: Final = 0.5
"""Difference of the logarithms of two forecasts at which a moment has 1/e of the weight."""
CUTS: Final = (0.0, 0.01, 0.02, 0.04, 0.08, 0.15, 0.25, 0.35, 0.45, 0.55, 0.65, 0.75, 0.85, 1.0)
"""Quantiles, the worst first. Between two of them, one path represents all others."""


class ArrivalHistory:
    """Events by slot and partition of the last decision intervals."""

    def __init__(self) -> None:
        self.intervals, self.by_slot, self.last = np.zeros((0, 0, 0)), np.zeros((0, 0)), np.zeros((0, 0))
        """The remembered intervals, oldest first: events by interval, slot and partition; by interval and slot; and
        those of the last one, by slot and partition."""
        self._buffer, self._end = self.intervals, 0
        """Array of twice the maximum length, so that intervals are rarely copied, and where the next one is stored."""
        self._bursts, self.in_bursts, self._ended_in_burst = self.by_slot, False, False
        """For each interval 1 for slots in which a burst begins, else 0; not a number: a stream of events. And whether
        events have arrived only in bursts lately."""
        self._begins_s: deque[float] = deque(maxlen=RECENT)
        self._last_s = self.interval_s = self.begin_s = 0.0
        """Length of an interval in whole slots, and earliest recent offset of arrivals within their slot, seconds."""
        self._length = self._unusual = 0
        """Slots of the last tick, and how many ticks in a row had this number, if it is not that of an interval."""
        self.slot_s = 0.1
        self.begun = np.zeros((0, 0))
        """Arrivals of the present, unfinished interval, shape (slots, partitions)."""

    def observe(self, observation: GroupObservation) -> Floats:
        """Add one interval. Return its events by partition."""
        recent, slots = observation.recent, self._slots_of(observation)
        if recent is not None and slots.any():
            self._begins_s.append(recent.begin_s)
            self.begin_s = min(self._begins_s)
        self._last_s, self.begun = observation.at_s, slots[:0]
        known, whole, partitions = self.intervals.shape
        self._unusual = 0 if len(slots) == whole else self._unusual + 1 if len(slots) == self._length else 1
        self._length = len(slots)
        if slots.shape[1] != partitions or self._unusual >= (RECENT if known >= RECENT else 2):
            most = max(RECENT, min(REMEMBERED, 13 * MAX_CELLS // max(1, slots.size)))
            self._buffer, self._end = np.zeros((2 * most, len(slots), slots.shape[1])), 0
            self._unusual, whole = 0, len(slots)
            self.by_slot = self._bursts = np.zeros((0, whole))
        most = len(self._buffer) // 2
        if self._end == len(self._buffer):
            self._buffer[:most], self._end = self._buffer[most:], most
        self._buffer[self._end] = _fitted(slots, whole)
        self._end += 1
        self.intervals = self._buffer[max(0, self._end - most) : self._end]
        self.last, self.interval_s = self.intervals[-1], float(whole * self.slot_s)
        newest = self.last.sum(axis=1)
        many = newest > FEW * newest.max()
        bursts = _bursts_in(newest, many, continues=self._ended_in_burst)
        self.by_slot = np.concatenate((self.by_slot, newest[None]))[-most:]
        self._bursts = np.concatenate((self._bursts, bursts[None]))[-most:]
        self._ended_in_burst = bool(many[-1])
        self.in_bursts = bool(self._bursts[-RECENT:].sum() > 0)
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
        count, at = self._bursts[-1].sum(), np.flatnonzero(self._bursts > 0)
        gaps = np.sort(at[1:] - at[:-1])
        # the median gap, because a silence must not make later bursts look rare
        usual = 2 * len(self.last) / (gaps[len(gaps) // 2] + gaps[(len(gaps) - 1) // 2]) if len(gaps) else count
        return np.asarray(values * (usual / count)) if count else None

    def moments(self, intervals: int) -> Ints:
        """Return past slots, followed by `intervals`, after which arrivals may have been similar to those that follow.

        They are beginnings of intervals; for bursts, slots at which the last burst was as long ago as it is now, so
        that a path keeps the phase of regular bursts.
        """
        known, whole = self.intervals.shape[:2]
        now, last = known * whole, (known - intervals) * whole
        ticks = np.arange(0, last + 1, whole)
        if not self.in_bursts:
            return ticks
        bursts = np.flatnonzero(self._bursts > 0)
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
        waits = np.minimum(np.maximum(lag - (behind - arrived), 0.0), arrived)
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
    return np.concatenate((np.zeros((-surplus, slots.shape[1])), slots)) if surplus else slots


def _bursts_in(by_slot: Floats, many: Flags, *, continues: bool) -> Floats:
    """Return 1 for the first slot of each burst; not a number if events arrive between bursts, too.

    A burst may lie in two slots, because a reading of the offsets may divide it. continues: the last slot before these
    has a burst.
    """
    before = np.concatenate((np.array([continues]), many[:-1]))
    firsts = np.flatnonzero(many & ~before)
    sizes = np.add.reduceat(by_slot, firsts) if len(firsts) else np.zeros(0)
    is_long = (many[1:] & before[1:] & before[:-1]).any()
    only = 4 * len(firsts) <= len(by_slot) and not is_long and (sizes > 0.5 * sizes.max(initial=0.0)).all()
    return np.asarray(np.where(only, many & ~before, np.nan))


class Ensemble:
    """Remembers the forecast of each interval and the arrivals that followed, and makes paths of both."""

    def __init__(self, history: ArrivalHistory) -> None:
        self._history = history
        self._forecasts = Forecasts(np.zeros(0))
        self._made, self._earlier, self._totals = np.zeros((2, 0)), deque[Floats](), np.zeros((0, 2))
        """Forecasts of the next interval and of the last one of the horizon, by partition: those made at the last tick,
        and those made before each remembered interval, then their sums."""

    def observe(self, counts: Floats, intervals: int, inflow: tuple[float, ...] = ()) -> None:
        """Add the last interval of the history, and make the forecasts of the next `intervals`."""
        usual = self._history.normalised(counts)
        if len(self._history.intervals) == 1:  # nothing that was known before is of use
            self._forecasts = Forecasts(counts if usual is None else usual)
            self._forecasts.remember(intervals)
            self._made, self._earlier = np.array([counts, counts]), deque()
        elif usual is not None:
            self._forecasts.observe(usual, intervals)
        known = len(self._history.intervals)
        self._totals = np.concatenate((self._totals, self._made.sum(axis=1)[None]))[-known:]
        self._earlier = deque((*self._earlier, self._made), known)
        self._made = np.array([self._forecasts.ahead(steps, inflow) for steps in sorted({1, intervals})])[[0, -1]]

    def paths(self, intervals: int, rate: float) -> Paths:
        """Return paths of this many intervals, the worst first: the one with the highest backlog at `rate` events/s."""
        history, series = self._history, self._history.intervals
        whole, partitions = series.shape[1:]
        moments, sizes, now = history.moments(intervals), self._made.max(axis=0), _between(self._made, intervals)
        if not len(moments) or not sizes.any():
            shape = history.by_slot[-1] + 1e-9
            evenly = now[:, None] * (shape / shape.sum())[:, None]
            return Paths(evenly.reshape(1, -1, partitions), np.ones(1), sizes)
        first = moments // whole
        totals = self._totals[first].T  # forecasts of the whole group: of the next and the last interval
        distance = np.log(np.maximum(1.0, totals[0]) / max(1.0, self._made[0].sum())) / SIMILAR
        weights = FADING ** (len(series) - first) * np.exp(-(distance**2)) + 1e-12
        then = np.ascontiguousarray(_between(totals, intervals).T)  # shape (moments, intervals)
        ratios = now.sum(axis=1) / np.maximum(1.0, then)
        factors, by_slot = ratios, history.by_slot
        if not history.in_bursts:  # an excess over the forecast may come again, but it does not grow with the forecast
            reached, begin = np.append(0.0, by_slot.cumsum()), moments[:, None] + whole * np.arange(intervals)
            growth, came = now.sum(axis=1) - then, np.maximum(1.0, reached[begin + whole] - reached[begin])
            factors = np.where(ratios > 1, np.minimum(ratios, 1 + growth / came), ratios)
        scaled = _following(by_slot.reshape(-1, 1), by_slot, moments, factors, np.zeros((*factors.shape, 1)))
        highest = backlogs(scaled[:, :, 0], rate, history.slot_s)
        order = np.argsort(-highest, kind="stable")
        stride = max(1, intervals * whole * partitions * len(CUTS) // MAX_CELLS)
        cuts = np.array(CUTS)[:: min(stride, len(CUTS) - 1)]  # at least one path
        cuts[-1] = 1.0
        above = np.searchsorted(np.cumsum(weights[order]) / weights.sum(), (cuts[1:] + cuts[:-1]) / 2)
        chosen = order[np.minimum(len(order) - 1, above)]
        # partitions may have other shares of the events now than they had then
        before = np.array([self._earlier[place] for place in first[chosen].tolist()]).swapaxes(0, 1)
        shift = np.ascontiguousarray(now - ratios[chosen][:, :, None] * _between(before, intervals).swapaxes(0, 1))
        events = _following(series.reshape(-1, partitions), by_slot, moments[chosen], factors[chosen], shift)
        return Paths(events, cuts[1:] - cuts[:-1], sizes)


@compiled
def _following(events: Floats, by_slot: Floats, moments: Ints, factors: Floats, shift: Floats) -> Floats:
    """Return the events after each moment, with the factor and the shift (also by partition) of each interval."""
    (intervals, partitions), whole, totals = shift.shape[1:], by_slot.shape[1], by_slot.ravel()
    found = np.empty((len(moments), intervals * whole, partitions))
    for moment, first in enumerate(moments):
        for interval in range(intervals):
            begin = first + interval * whole
            total = max(1e-9, totals[begin : begin + whole].sum())
            for slot in range(whole):
                share = totals[begin + slot] / total
                for partition in range(partitions):
                    scaled = factors[moment, interval] * events[begin + slot, partition]
                    more = share * shift[moment, interval, partition]
                    found[moment, interval * whole + slot, partition] = max(0.0, scaled + more)
    return found


def _between(ends: Floats, intervals: int) -> Floats:
    """Return values of this many intervals, from the first to the last one."""
    return ends[:1] if intervals == 1 else np.linspace(ends[0], ends[1], intervals)
