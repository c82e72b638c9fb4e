"""Look ahead: Holt's level and trend (1957) for every partition at once, and a guard that lets it only raise demand.

One step is one decision interval: rates are observed once per interval, and `steps` ahead may be a fraction.
"""

import math

import numpy as np
from numpy.typing import NDArray

from autoscaler.estimation.order_statistics import next_at_or_below

Floats = NDArray[np.float64]


class Holt:
    """Forecasts of λ, events/s, and how wrong they were.

    level, trend: weight of the newest value in each, in (0, 1]. memory: errors remembered for each horizon.
    furthest: the longest horizon, in steps, whose errors can be told.
    O(partitions) to observe and to look ahead, O(memory · partitions) for errors.
    """

    def __init__(
        self, partitions: int, *, level: float = 0.6, trend: float = 0.3, memory: int = 60, furthest: int = 30
    ) -> None:
        if not (0 < level <= 1 and 0 < trend <= 1):
            raise ValueError(f"level = {level}, trend = {trend}: both must be more than 0 and at most 1")
        if memory < 1 or furthest < 1:
            raise ValueError(f"memory = {memory}, furthest = {furthest}: both must be at least 1 step")
        self.memory = memory
        self.furthest = furthest
        self._weights = level, trend
        self._level: Floats = np.full(partitions, np.nan)
        self._trend: Floats = np.zeros(partitions)
        self._rates, self._levels, self._trends = (_Past(memory + furthest, partitions) for _ in range(3))

    @property
    def partitions(self) -> int:
        """How many partitions are forecast."""
        return len(self._level)

    @property
    def rates(self) -> Floats:
        """The newest rates, events/s; nan before the first."""
        return np.array(self._rates.newest(1)[0])

    def observe(self, rates: Floats) -> None:
        """Take in the rates of one more interval, by partition. New partitions begin with their first rate, flat.

        Raises ValueError if there are fewer partitions than before.
        """
        if (added := len(rates) - self.partitions) < 0:
            raise ValueError(f"rates of {len(rates)} partitions after those of {self.partitions}")
        if added:
            self._level = np.append(self._level, np.full(added, np.nan))
            self._trend = np.append(self._trend, np.zeros(added))
        level, trend = self._weights
        expected = np.where(np.isnan(self._level), rates, self._level + self._trend)
        before = np.where(np.isnan(self._level), rates, self._level)
        self._level = expected + level * (rates - expected)
        self._trend = self._trend + trend * (self._level - before - self._trend)
        for past, now in ((self._rates, rates), (self._levels, self._level), (self._trends, self._trend)):
            past.append(now)

    def ahead(self, steps: float) -> Floats:
        """Return λ of each partition in the interval that ends so many steps from now; nan before the first rates."""
        return np.asarray(np.maximum(0.0, self._level + steps * self._trend))

    def past(self, steps: float, count: int) -> tuple[Floats, Floats, Floats]:
        """Return what came, what was forecast for it ⌈steps⌉ before, and the rate at that time: (count, partitions).

        The last `count` steps, oldest first; nan where there was nothing yet. Raises ValueError beyond `furthest`.
        """
        back = max(1, math.ceil(steps))
        if back > self.furthest or count > self.memory:
            raise ValueError(f"{count} forecasts {back} steps ahead: only {self.memory} up to {self.furthest} are kept")
        forecast = self._trends.newest(count, back) * back
        forecast += self._levels.newest(count, back)
        np.maximum(forecast, 0.0, out=forecast)
        return self._rates.newest(count), forecast, self._rates.newest(count, back)

    def error_quantile(self, q: float, steps: float) -> Floats:
        """Return what a share q of errors (what came − forecast ⌈steps⌉ before) did not exceed, by partition."""
        came, forecast, _ = self.past(steps, self.memory)
        return quantile(came - forecast, q)


class GuardedForecast:
    """Demand ahead: never below the newest rate, and above it only where that has paid.

    It pays for a partition where, over the last `judged` steps, the larger of rate and forecast missed what came by
    less than the rate alone (persistence) did, on average. With fewer than `enough` such steps it is off.
    """

    def __init__(self, holt: Holt, *, judged: int = 20, enough: int = 5) -> None:
        self.holt = holt
        self.judged = min(judged, holt.memory)
        self.enough = enough

    def observe(self, rates: Floats) -> None:
        """Take in the rates of one more interval; see Holt.observe."""
        self.holt.observe(rates)

    def helps(self, steps: float) -> NDArray[np.bool_]:
        """Tell for each partition whether the forecast so many steps ahead is on."""
        came, forecast, rate = self.holt.past(steps, self.judged)
        by_forecast, by_rate = np.abs(came - np.maximum(rate, forecast)), np.abs(came - rate)
        known = np.isfinite(by_rate)
        gain = np.where(known, by_rate - by_forecast, 0.0).sum(axis=0)
        return np.asarray((gain > 0) & (known.sum(axis=0) >= self.enough))

    def ahead(self, steps: float) -> Floats:
        """Return λ to be ready for in the interval that ends so many steps from now, events/s by partition."""
        rates = self.holt.rates
        return np.where(self.helps(steps), np.maximum(rates, self.holt.ahead(steps)), rates)

    def error_quantile(self, q: float, steps: float) -> Floats:
        """Return what a share q of errors of `ahead` did not exceed, by partition, had it been on or off as now."""
        came, forecast, rate = self.holt.past(steps, self.holt.memory)
        said = np.where(self.helps(steps), np.maximum(rate, forecast), rate)
        return quantile(came - said, q)


def quantile(errors: Floats, q: float) -> Floats:
    """Return the error that the next one stays at or below with probability q, by column; nan where none is known.

    errors: by step and partition, nan: unknown. The rank is distribution-free (`order_statistics`); where errors are
    too few for q it is the largest seen.
    """
    if not 0 < q < 1:
        raise ValueError(f"quantile q must lie between 0 and 1, got {q}")
    known = np.isfinite(errors).sum(axis=0)
    ranks = np.array([min(count, next_at_or_below(q, count)) if count else 1 for count in range(len(errors) + 1)])
    ordered = np.sort(errors.T, axis=1)  # nan come last
    return np.asarray(ordered[np.arange(errors.shape[1]), ranks[known] - 1])


class _Past:
    """The newest rows by step and partition. Each is written twice, so that any run of them is one slice."""

    def __init__(self, steps: int, partitions: int) -> None:
        self._steps = steps
        self._rows: Floats = np.full((2 * steps, partitions), np.nan)
        self._next = 0

    def append(self, row: Floats) -> None:
        if (added := len(row) - self._rows.shape[1]) > 0:
            self._rows = np.pad(self._rows, ((0, 0), (0, added)), constant_values=np.nan)
        self._rows[self._next] = self._rows[self._next + self._steps] = row
        self._next = (self._next + 1) % self._steps

    def newest(self, count: int, back: int = 0) -> Floats:
        """Return `count` rows, oldest first, the last of which is `back` steps old."""
        end = self._next + self._steps - back
        return self._rows[end - count : end]
