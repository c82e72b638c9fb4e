"""Forecast of the events of each partition.

Several forecasters run in parallel, and the one with the lowest recent error is used. Errors are kept for two
distances, the next interval and the lead that a change needs: persistence is hard to beat for the next second, but
cannot predict a ramp.
"""

from collections import deque
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from autoscaler.policies.tail_aware.situation import Floats
from autoscaler.policies.tail_aware.surprises import ForecastError, ForecastErrors

SMOOTHING: Final = ((1.0, 0.0), (1.0, 1.0), (0.7, 0.2), (0.3, 0.06), (0.1, 0.01))
"""Weights of the newest value in level and trend (Holt 1957): persistence first, then ever slower. None is tuned to a
workload: they span steps, ramps and noise, and which one applies is measured."""
FORECASTS: Final = len(SMOOTHING) + 1
"""Forecasts of each series: one for each pair, and the median of the newest three values."""
SHARE_WEIGHT: Final = 0.05
"""Weight of the newest value in a partition's share of all events."""
NORMAL: Final = 1.2533
"""√(π/2): standard deviation over mean absolute deviation of a normal distribution."""
MEMORY: Final = 0.95
"""Weight of an error after one more interval: errors of the last 20 or so decide."""
REMEMBERED: Final = 20
"""Intervals in which a fall is looked for."""


class Demand:
    """Events per interval of each partition, one interval at a time."""

    _far: "_Errors"
    _far_total: "_Errors"

    def __init__(self) -> None:
        self._totals: deque[float] = deque(maxlen=REMEMBERED)
        self._surprises = ForecastErrors()
        self._start(np.zeros(0), lead=1)
        self._cached: dict[int, Floats] = {}
        """Cached forecasts by number of intervals ahead."""

    def observe(self, slots: Floats, surprising: Floats | None = None, *, lead: int = 1) -> None:
        """Take in one more interval, events by slot and partition. Another number of partitions starts all over.

        surprising: the same as far as surprises are concerned.
        lead: intervals that a change needs; `ahead` beyond the next interval trusts what has erred least so far ahead.
        """
        counts = slots.sum(axis=0)
        if len(counts) != len(self._shares):
            self._start(counts, lead=lead)
        else:
            self._learn_surprise(slots if surprising is None else surprising, counts)
            self._near.observe(counts)
            self._far.observe(counts)
            self._far_total.observe(counts.sum(keepdims=True))
            self._own.observe(counts)
            self._total.observe(counts.sum(keepdims=True))
            self._learn_shares(counts)
        self._cached.clear()
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

    def ahead_with_inflow(self, inflow: tuple[float, ...], intervals: int) -> Floats:
        """Return `ahead(intervals)`, scaled to the total of `inflow` if that reaches so far."""
        own = self.ahead(intervals)
        if intervals > len(inflow):
            return own
        expected, total = own.sum(), inflow[intervals - 1]
        return np.asarray(own * (total / expected) if expected > 0 else total * self._shares)

    def variance(self) -> Floats:
        """Return the variance of each partition's part of `ahead(1)`, events²: what all show together for each event.

        One partition's few errors say little about its next one; a common dispersion (variance per event) says more.
        """
        squared = (NORMAL * self._split / max(1.0, self._split_weight)) ** 2
        expected = self.ahead()
        total = expected.sum()
        return np.asarray(expected * (squared.sum() / total) if total > 0 else squared)

    def surprises(self) -> list[ForecastError]:
        """Return what more than `ahead(1)` may come."""
        return self._surprises.ahead(float(self.ahead().sum()))

    def fall(self) -> float:
        """Return the most by which the events of an interval, all partitions together, fell of late within the lead.

        And one interval more: a rise is seen when the interval is over that it begins in.
        """
        totals, lead = np.array(self._totals), self._far.distance + 1
        return float((totals[:-lead] - totals[lead:]).max(initial=0.0))

    def _start(self, counts: Floats, *, lead: int) -> None:
        self._own, self._total = _Holts(counts), _Holts(counts.sum(keepdims=True))
        self._shares = np.full(len(counts), 1.0 / max(1, len(counts)))
        self._seen = 0
        self._split, self._split_weight = np.zeros(len(counts)), 0.0
        self._near = _Errors(1, 2 * FORECASTS, len(counts))
        self._far = _Errors(lead, 2 * FORECASTS, len(counts))
        self._far_total = _Errors(lead, FORECASTS, 1)
        self._learn_shares(counts)

    def _learn_surprise(self, surprising: Floats, counts: Floats) -> None:
        said, came = self.ahead(), counts.sum()
        total = said.sum()
        self._surprises.note(float(total), surprising)
        self._split = MEMORY * self._split + np.abs(counts - (said * (came / total) if total > 0 else counts))
        self._split_weight = MEMORY * self._split_weight + 1.0

    def _learn_shares(self, counts: Floats) -> None:
        total = counts.sum()
        if total > 0:
            self._seen += 1
            weight = max(SHARE_WEIGHT, 1.0 / (self._seen + 1))
            self._shares = self._shares + weight * (counts / total - self._shares)

    def _candidates(self, intervals: int) -> Floats:
        if intervals not in self._cached:
            of_total = self._total.ahead(intervals) * self._shares[None, :]
            self._cached[intervals] = np.maximum(0.0, np.concatenate((self._own.ahead(intervals), of_total)))
        return self._cached[intervals]


class _Errors:
    """Absolute errors of all forecasts so many intervals ahead, the older the lighter.

    Absolute, not squared: one spike says little about the next interval.
    """

    def __init__(self, distance: int, forecasts: int, series: int) -> None:
        self.distance = distance
        self._open: deque[Floats] = deque(maxlen=distance)
        self._absolute = np.zeros((forecasts, series))

    def note(self, forecasts: Floats) -> None:
        """Remember what was said about the interval `distance` ahead."""
        self._open.append(forecasts)

    def observe(self, counts: Floats) -> None:
        """Compare what came with what was said about it."""
        if len(self._open) < self.distance:
            return
        self._absolute = MEMORY * self._absolute + np.abs(self._open[0] - counts)

    def best(self) -> NDArray[np.intp]:
        """Return for each series which forecast has erred least; persistence until one is better."""
        return np.asarray(np.argmin(self._absolute, axis=0))


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
        return np.concatenate((self._level + steps * self._trend, _median(self._newest)[None, :]))


def _median(values: Sequence[Floats]) -> Floats:
    """Return the median of each place: several times as fast as `np.median` for so few."""
    ordered, half = np.sort(values, axis=0), len(values) // 2
    return np.asarray(ordered[half] if len(values) % 2 else (ordered[half - 1] + ordered[half]) / 2)
