"""Arrivals of the last intervals by slot: distinguishes bursts from streams, and finds which events wait."""

from collections import deque
from collections.abc import Iterable
from functools import reduce
from math import ceil, inf
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from autoscaler.model import GroupObservation, RecentArrivals
from autoscaler.policies.tail_aware.queues import capacity_of
from autoscaler.policies.tail_aware.situation import Floats

SHAPES: Final = 8
"""Intervals whose shapes are looked at: enough for a pattern to show, few enough to follow when it changes."""
ALIKE: Final = 1e-9
OUT_OF_STEP: Final = 0.5
"""Bursts are out of step if the largest slots of intervals differ by less than this share of the difference of sums."""
UNEVEN: Final = 0.2
"""Minimum difference of the sums for that, as a share of their mean."""
SLOT_S: Final = 0.1
"""Slot if arrival times are unknown: then all events of an interval count as one burst in its last slot."""

COUNTED: Final = 64
"""Intervals in which bursts are counted: eight have one more or less by chance."""
AS_MANY: Final = 0.9
"""Share of as many bursts."""
BURST: Final = 0.5
"""Minimum share of the largest slot for a burst."""
QUIET: Final = 0.05
"""Maximum share of the largest slot between bursts. If a slot is in between, the traffic is not only bursts."""
GAPS: Final = 4
"""Between bursts, at least, that say that these are regular."""
LEAST_GAP: Final = 3
"""Slots between two bursts, at least: of a stream every slot would be one."""
MAX_GAP_DIFFERENCE_SLOTS: Final = 2
"""Slots by which gaps may differ: the last slot of an interval is longer than others, the first one shorter."""


class Shape(NamedTuple):
    """The share of an interval's events that each slot gets."""

    own: Floats
    """Share by partition, shape (slots, partitions). A partition without events gets the shares of all events."""
    together: Floats
    """Share of all events, shape (slots,)."""
    weight: float
    """Likelihood to be the next shape: its number of events."""
    factor: float = 1.0
    """Events as a multiple of the usual number: bursts out of step with the intervals come twice in one, and not at all
    in another."""

    @classmethod
    def of(cls, slots: Floats) -> "Shape":
        """Return the shape of events by slot and partition; evenly where there are none."""
        by_slot, events = slots.sum(axis=1), slots.sum(axis=0)
        total = by_slot.sum()
        together = by_slot / total if total > 0 else np.full(len(slots), 1.0 / len(slots))
        own = np.where(events > 0, slots / np.maximum(events, 1.0), together[:, None])
        return cls(own, together, float(total))

    @property
    def bursts(self) -> float:
        """How many times as many events as the largest slot holds there are."""
        return min(self.weight, 1.0) / float(self.together.max())


def _out_of_step(each: Iterable[Shape], factors: Floats) -> list[Shape]:
    return [one._replace(weight=1.0 / len(factors), factor=f) for one, f in zip(each, factors.tolist(), strict=True)]


class ArrivalHistory:
    """The last intervals, slot by slot."""

    def __init__(self) -> None:
        self._intervals: deque[Floats] = deque(maxlen=SHAPES)
        self._each: deque[Shape] = deque(maxlen=SHAPES)
        self._begin_s: deque[float] = deque(maxlen=SHAPES)
        self._bursts: deque[float] = deque(maxlen=COUNTED)
        """In each interval, as many as its largest slot says."""
        self.shapes: list[Shape] = []
        """Arrival scenarios of the next interval: the shape of each of the last ones, or one shape if equal. An
        average would make drifting bursts look like a stream."""
        self._seen: list[Shape] = []
        """Shapes of the last intervals, with their factors."""
        self.usual = self.surprising = np.zeros((0, 0))
        """Arrivals of the last interval, normalised to the average burst count, shape (slots, partitions); and those
        that count as a forecast error: `last` if no recent interval had as many bursts, else `usual`."""
        self._last_s: float | None = None
        self._begun_s = inf
        self._newest_s = 0.0
        """`RecentArrivals.begin_s` of those that came last."""
        self._drifting = False
        self.begun = np.zeros((0, 0))
        """Arrivals of the present, unfinished interval, shape (slots, partitions)."""
        self.slot_s = SLOT_S

    @property
    def interval_s(self) -> float:
        """Length of the last interval, in whole slots."""
        return len(self._intervals[-1]) * self.slot_s

    @property
    def begin_s(self) -> float:
        """Earliest recent offset of arrivals within a slot, seconds; for bursts that drift through the intervals, the
        latest offset."""
        return self._newest_s if self._drifting else min(self._begin_s, default=0.0)

    def early(self, observation: GroupObservation) -> bool:
        """Add the arrivals before a decision between ticks; return False if the interval is over."""
        recent = observation.recent
        if recent is None or not self._intervals or recent.counts.shape[1] != self.last.shape[1]:
            return False
        begun = np.concatenate((self.begun, np.asarray(recent.counts, np.float64)))
        if len(begun) >= len(self.last):
            return False
        self.begun = begun
        self._begun_s = min(self._begun_s, recent.begin_s)
        self._note_newest(recent)
        return True

    def _note_newest(self, recent: RecentArrivals | None) -> None:
        if recent is not None and recent.counts.any():
            self._newest_s = recent.begin_s

    def observe(self, observation: GroupObservation) -> Floats:
        """Take in one more interval; return its events by partition."""
        recent = observation.recent
        if recent is not None and len(recent.counts):
            slots, self.slot_s = np.ascontiguousarray(recent.counts, np.float64), recent.slot_s
            if self.begun.shape[1] == slots.shape[1]:
                slots = np.concatenate((self.begun, slots))
        else:
            elapsed_s = 1.0 if self._last_s is None else observation.at_s - self._last_s
            rates = np.array([load.arrival_rate for load in observation.partitions])
            slots = np.zeros((max(1, round(elapsed_s / self.slot_s)), len(rates)))
            slots[-1] = rates * len(slots) * self.slot_s
        if slots.any():
            self._begin_s.append(0.0 if recent is None else min(recent.begin_s, self._begun_s))
        self._note_newest(recent)
        self._last_s, self._begun_s = observation.at_s, inf
        self.begun = slots[:0]
        if self._intervals and self._intervals[-1].shape != slots.shape:
            # partitions were added, or ticks were missed: other shapes cannot be averaged
            self._intervals.clear()
            self._each.clear()
            self._bursts.clear()
        self._intervals.append(slots)
        self._each.append(shape := Shape.of(slots))
        self._bursts.append(shape.bursts)
        following = self._following()
        self._drifting = bool(following)
        factors = self._factors(regular=self._drifting)
        self._seen = self._lying_so() if factors is None else _out_of_step(self._each, factors)
        self.shapes = self._seen
        if following:
            each = [Shape.of(one) for one in following]
            self.shapes = _out_of_step(each, np.array([one.bursts for one in each]) / np.mean(self._bursts))
        self._tell_apart(slots, [1.0] if factors is None else factors.tolist())
        return np.asarray(slots.sum(axis=0))

    @property
    def last(self) -> Floats:
        """The last interval, shape (slots, partitions)."""
        return self._intervals[-1]

    def in_bursts(self, share: float) -> bool:
        """Return whether in each scenario more than this share of the events is in one slot."""
        return all(one.together.max() > share for one in self.shapes)

    def capacity(self, service_rate: float, target_s: float) -> float:
        """Return how many events per interval a replica serves in time, as events lie."""
        if any(one.factor != 1.0 for one in self._seen):
            row = np.concatenate([one.factor * one.together for one in self._seen])
            return capacity_of(row, service_rate, self.slot_s, target_s)
        each = (
            one.weight * capacity_of(np.tile(one.together, 3), service_rate, self.slot_s, target_s)
            for one in self._seen
        )
        return sum(each)

    def _lying_so(self) -> list[Shape]:
        average = Shape.of(reduce(np.add, self._intervals))
        each = [one for one in self._each if one.weight > 0]
        if all((np.abs(one.own - average.own) <= ALIKE).all() for one in each):
            return [average._replace(weight=1.0)]
        return [one._replace(weight=one.weight / average.weight) for one in each]

    def _tell_apart(self, slots: Floats, factors: list[float]) -> None:
        """Keep what of an interval is usual: a forecast of intervals with one burst, two, and one is none of bursts."""
        *before, factor = factors
        if factor > 0 or self.usual.shape != slots.shape:
            self.usual = slots / (factor or 1.0)
        expected = self._drifting or max(before, default=factor) > AS_MANY * factor
        self.surprising = self.usual if expected else slots

    def _following(self) -> list[Floats]:
        """Return what came in the interval after each burst, from as long after it on as the last one is ago now.

        Only where bursts are regular and out of step with the intervals: then the next one is as long after the last.
        """
        series = np.concatenate(self._intervals)
        by_slot, whole = series.sum(axis=1), len(self._intervals[-1])
        bursts = np.flatnonzero(by_slot >= BURST * max(1.0, float(by_slot.max())))
        gaps = np.diff(bursts)
        if (
            len(gaps) < GAPS
            or gaps.min() < LEAST_GAP
            or np.ptp(gaps) > MAX_GAP_DIFFERENCE_SLOTS
            or (gaps == whole).all()
        ):
            return []
        if np.delete(by_slot, bursts).max(initial=0.0) > QUIET * by_slot.max():
            return []
        ago = len(series) - int(bursts[-1])
        if ago > gaps.max():
            return []
        after = [first + ago for first in bursts[:-1].tolist() if first + ago + whole <= len(series)]
        return [series[first : first + whole] for first in after]

    def _factors(self, *, regular: bool) -> Floats | None:
        """Return how many times as many bursts as usual each interval has; None where they keep step, or are none.

        regular: bursts are, and out of step.
        """
        totals = np.array([one.weight for one in self._each])
        peaks = totals * [float(one.together.max()) for one in self._each]
        known = peaks[totals > 0]
        if not regular:
            if len(totals) < SHAPES or 2 * len(known) < SHAPES:
                return None
            by_sum, by_burst = (float(np.abs(np.diff(of)).mean() / of.mean()) for of in (totals, known))
            if by_sum <= UNEVEN or by_burst >= OUT_OF_STEP * by_sum:
                return None
        bursts = totals / np.maximum(peaks, ALIKE)
        return np.asarray(bursts / np.mean(self._bursts))

    def waiting(self, lag: Floats, reach_s: float) -> Floats:
        """Return which events wait, by age: the newest `lag` events of each partition, shape (slots, partitions).

        It reaches back over an interval and `reach_s`, as far as is known; older events stand in the first row.
        """
        slots = len(self._intervals[-1]) + ceil(reach_s / self.slot_s) + 1
        begun = () if not len(self.begun) else (self.begun,)
        newest = list(self._intervals)[-ceil(slots / len(self._intervals[-1])) :]
        arrived = np.concatenate((*newest, *begun))[-slots:]
        behind = np.cumsum(arrived[::-1], axis=0)[::-1]  # events of this slot and all later ones
        waits = np.clip(lag[None, :] - (behind - arrived), 0.0, arrived)
        waits[0] += np.maximum(0.0, lag - behind[0])
        return np.asarray(waits)


def uncommitted_left_out(lag: Floats, owners: NDArray[np.int64], done: Floats) -> Floats:
    """Return what waits of `lag`: without what each replica has done since the commits that lag is counted from.

    owners: replica of each partition, −1 for none. done: events that a busy replica does in that time, by replica.
    """
    owned = owners >= 0
    held = np.bincount(owners[owned], lag[owned], minlength=len(done))
    left = np.maximum(0.0, held - done) / np.maximum(held, 1.0)
    return np.asarray(np.where(owned, lag * left[np.where(owned, owners, 0)] if len(done) else lag, lag))
