"""How events come, and how many each partition will get.

Slots of the last intervals tell bursts from streams, and which events wait. Of several forecasts that run side by side
the one that has erred least speaks: persistence is hard to beat for the next second, and says nothing about a ramp, so
errors are kept for two distances, the next interval and the lead that a change needs.
"""

from collections import deque
from math import ceil
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from autoscaler.model import GroupObservation

Floats = NDArray[np.float64]

SHAPES: Final = 8
"""Intervals whose shapes are looked at: enough for a pattern to show, few enough to follow when it changes."""
ALIKE: Final = 1e-9
SLOT_S: Final = 0.1
"""Of a world that does not say how events lay: all of an interval are taken to be one burst in its last slot."""
SMOOTHING: Final = ((1.0, 0.0), (1.0, 1.0), (0.7, 0.2), (0.3, 0.06), (0.1, 0.01))
"""Weights of the newest value in level and trend (Holt 1957): persistence first, then ever slower. None is tuned to a
workload: they span steps, ramps and noise, and which one applies is measured."""
FORECASTS: Final = len(SMOOTHING) + 1
"""Of each series: one by each pair, and the median of the newest three."""
SHARE_WEIGHT: Final = 0.05
"""Of the newest value in a partition's share of all events."""
NORMAL: Final = 1.2533
"""√(π/2): standard deviation over mean absolute deviation of a normal distribution."""
MEMORY: Final = 0.95
"""Weight of an error after one more interval: errors of the last 20 or so decide."""
REMEMBERED: Final = 20
"""Intervals in which a fall is looked for."""


class Shape(NamedTuple):
    """The share of an interval's events that each slot gets."""

    own: Floats
    """By partition, shape (slots, partitions). One that was silent is taken to be like all."""
    together: Floats
    """Of all events, shape (slots,)."""
    weight: float
    """How likely it is to be the next one: as many events as lay so."""

    @classmethod
    def of(cls, slots: Floats) -> "Shape":
        """Return the shape of events by slot and partition; evenly where there are none."""
        by_slot, events = slots.sum(axis=1), slots.sum(axis=0)
        total = by_slot.sum()
        together = by_slot / total if total > 0 else np.full(len(slots), 1.0 / len(slots))
        own = np.where(events > 0, slots / np.maximum(events, 1.0), together[:, None])
        return cls(own, together, float(total))


class ArrivalHistory:
    """The last intervals, slot by slot."""

    def __init__(self) -> None:
        self._intervals: deque[Floats] = deque(maxlen=SHAPES)
        self._last_s: float | None = None
        self.slot_s = SLOT_S

    @property
    def interval_s(self) -> float:
        """Length of the last interval, in whole slots."""
        return len(self._intervals[-1]) * self.slot_s

    def observe(self, observation: GroupObservation) -> Floats:
        """Take in one more interval; return its events by partition."""
        recent = observation.recent
        if recent is not None and len(recent.counts):
            slots, self.slot_s = np.ascontiguousarray(recent.counts, np.float64), recent.slot_s
        else:
            elapsed_s = 1.0 if self._last_s is None else observation.at_s - self._last_s
            rates = np.array([load.arrival_rate for load in observation.partitions])
            slots = np.zeros((max(1, round(elapsed_s / self.slot_s)), len(rates)))
            slots[-1] = rates * len(slots) * self.slot_s
        self._last_s = observation.at_s
        if self._intervals and self._intervals[-1].shape != slots.shape:
            self._intervals.clear()  # partitions were added, or ticks were missed: other shapes cannot be averaged
        self._intervals.append(slots)
        return np.asarray(slots.sum(axis=0))

    @property
    def last(self) -> Floats:
        """The last interval, shape (slots, partitions)."""
        return self._intervals[-1]

    def shapes(self) -> list[Shape]:
        """Return how events may lie in an interval: as in each of the last ones; one shape where they lay alike.

        They are not averaged: a burst that drifts through the interval would look like a stream.
        """
        average = Shape.of(np.sum(self._intervals, axis=0))
        each = [Shape.of(slots) for slots in self._intervals if slots.any()]
        alike = all(np.allclose(one.own, average.own, rtol=0, atol=ALIKE) for one in each)
        return (
            [average._replace(weight=1.0)]
            if alike
            else [one._replace(weight=one.weight / average.weight) for one in each]
        )

    def waiting(self, lag: Floats, reach_s: float) -> Floats:
        """Return which events wait, by age: the newest `lag` events of each partition, shape (slots, partitions).

        It reaches back over an interval and `reach_s`, as far as is known; older events stand in the first row.
        """
        slots = len(self._intervals[-1]) + ceil(reach_s / self.slot_s) + 1
        arrived = np.concatenate(tuple(self._intervals))[-slots:]
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


class Demand:
    """Events per interval of each partition, one interval at a time."""

    def __init__(self) -> None:
        self._own = _Holts(np.zeros(0))
        self._total = _Holts(np.zeros(1))
        self._shares = np.zeros(0)
        self._seen = 0
        self._near = _Errors(1, 2 * FORECASTS, 0)
        self._far = _Errors(1, 2 * FORECASTS, 0)
        self._far_total = _Errors(1, FORECASTS, 1)
        self._totals: deque[float] = deque(maxlen=REMEMBERED)

    def observe(self, counts: Floats, *, lead: int = 1) -> None:
        """Take in the events of one more interval, by partition. Another number of partitions starts all over.

        lead: intervals that a change needs; `ahead` beyond the next interval trusts what has erred least so far ahead.
        """
        if len(counts) != len(self._shares):
            self._start(counts)
        else:
            self._near.observe(counts)
            self._far.observe(counts)
            self._far_total.observe(counts.sum(keepdims=True))
            self._own.observe(counts)
            self._total.observe(counts.sum(keepdims=True))
            self._learn_shares(counts)
        self._totals.append(float(counts.sum()))
        if lead != self._far.distance:
            self._far = _Errors(lead, 2 * FORECASTS, len(counts))
            self._far_total = _Errors(lead, FORECASTS, 1)
        self._near.note(self._candidates(1))
        self._far.note(self._candidates(lead))
        self._far_total.note(self._total.ahead(lead))

    def ahead(self, intervals: int = 1) -> Floats:
        """Return the events expected in the interval that ends so many intervals from now, by partition."""
        best = self._near.best() if intervals <= 1 else self._far.best()
        parts = np.asarray(np.take_along_axis(self._candidates(intervals), best[None, :], axis=0)[0])
        if intervals <= 1:
            return parts
        # A trend drowns in the noise of one partition and shows in the sum of all: it says how many, they say where.
        total = max(0.0, float(self._total.ahead(intervals)[self._far_total.best()[0], 0]))
        expected = parts.sum()
        return np.asarray(parts * (total / expected) if expected > 0 else total * self._shares)

    def told(self, inflow: tuple[float, ...], intervals: int) -> Floats:
        """Return `ahead(intervals)`; where `inflow`, as observed, reaches so far, it says how many, and that where."""
        own = self.ahead(intervals)
        if intervals > len(inflow):
            return own
        expected, total = own.sum(), inflow[intervals - 1]
        return np.asarray(own * (total / expected) if expected > 0 else total * self._shares)

    def variance(self) -> Floats:
        """Return the variance of `ahead(1)`, events², by partition: what all partitions show together for each event.

        One partition's few errors say little about its next one; a common dispersion (variance per event) says more.
        """
        squared = self._near.squared()
        expected = self.ahead()
        total = expected.sum()
        return np.asarray(expected * (squared.sum() / total) if total > 0 else squared)

    def fall(self) -> float:
        """Return the most by which the events of an interval, all partitions together, fell of late within the lead."""
        totals, lead = np.array(self._totals), self._far.distance
        return float((totals[:-lead] - totals[lead:]).max(initial=0.0))

    def _start(self, counts: Floats) -> None:
        self._own, self._total = _Holts(counts), _Holts(counts.sum(keepdims=True))
        self._shares = np.full(len(counts), 1.0 / max(1, len(counts)))
        self._seen = 0
        self._near = _Errors(1, 2 * FORECASTS, len(counts))
        self._far = _Errors(self._far.distance, 2 * FORECASTS, len(counts))
        self._far_total = _Errors(self._far.distance, FORECASTS, 1)
        self._learn_shares(counts)

    def _learn_shares(self, counts: Floats) -> None:
        total = counts.sum()
        if total > 0:
            self._seen += 1
            weight = max(SHARE_WEIGHT, 1.0 / (self._seen + 1))
            self._shares = self._shares + weight * (counts / total - self._shares)

    def _candidates(self, intervals: int) -> Floats:
        """Return what each forecast says, shape (2 · FORECASTS, partitions), none below 0."""
        of_total = self._total.ahead(intervals) * self._shares[None, :]
        return np.asarray(np.maximum(0.0, np.concatenate((self._own.ahead(intervals), of_total))))


class _Errors:
    """Absolute errors of all forecasts so many intervals ahead, the older the lighter.

    Absolute, not squared: one spike says little about the next interval.
    """

    def __init__(self, distance: int, forecasts: int, series: int) -> None:
        self.distance = distance
        self._open: deque[Floats] = deque(maxlen=distance)
        self._absolute = np.zeros((forecasts, series))
        self._weight = 0.0

    def note(self, forecasts: Floats) -> None:
        """Remember what was said about the interval `distance` ahead."""
        self._open.append(forecasts)

    def observe(self, counts: Floats) -> None:
        """Compare what came with what was said about it."""
        if len(self._open) < self.distance:
            return
        self._absolute = MEMORY * self._absolute + np.abs(self._open[0] - counts)
        self._weight = MEMORY * self._weight + 1.0

    def best(self) -> NDArray[np.intp]:
        """Return for each series which forecast has erred least; persistence until one is better."""
        return np.asarray(np.argmin(self._absolute, axis=0))

    def squared(self) -> Floats:
        """Return the squared standard deviation of the best, by series, as for normal errors; 0 before any."""
        if not self._weight:
            return np.zeros(self._absolute.shape[1])
        return np.asarray((NORMAL * self._absolute.min(axis=0) / self._weight) ** 2)


class _Holts:
    """Level and trend of several series under each pair of SMOOTHING, shape (pairs, series)."""

    def __init__(self, first: Floats) -> None:
        weights = np.array(SMOOTHING)
        self._level_weight, self._trend_weight = weights[:, :1], weights[:, 1:]
        self._level = np.repeat(first[None, :], len(weights), axis=0).astype(np.float64)
        self._trend = np.zeros_like(self._level)
        self._newest: deque[Floats] = deque([first], maxlen=3)

    def observe(self, values: Floats) -> None:
        """Take in the next value of each series."""
        expected = self._level + self._trend
        level = expected + self._level_weight * (values[None, :] - expected)
        self._trend = self._trend + self._trend_weight * (level - self._level - self._trend)
        self._level = level
        self._newest.append(values)

    def ahead(self, steps: int) -> Floats:
        """Return the forecasts, shape (FORECASTS, series): by each pair, and the median, which no spike can move."""
        return np.concatenate((self._level + steps * self._trend, np.median(self._newest, axis=0)[None, :]))
