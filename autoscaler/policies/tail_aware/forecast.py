"""Forecasts of arrivals, and paths, which are made from the arrivals that followed similar moments."""

from collections import deque
from typing import Final, NamedTuple

import numpy as np

from autoscaler.policies.tail_aware.arrivals import MAX_CELLS, ArrivalHistory, Floats, Window
from autoscaler.policies.tail_aware.queues import backlogs

SMOOTHING: Final = ((1.0, 0.0), (1.0, 1.0), (0.7, 0.2), (0.3, 0.06), (0.1, 0.01))
"""Weights of the newest value in level and trend (Holt's method)."""
ERROR_DECAY: Final = 0.95
"""Factor, for each interval, on the weight of earlier forecast errors and of earlier shares of the partitions."""
FADING: Final = 0.99
"""Factor on the weight of a moment for each later interval."""
SIMILAR: Final = 0.5
"""Difference of the logarithms of two forecasts at which a moment has 1/e of the weight."""
CUTS: Final = (0.0, 0.01, 0.02, 0.04, 0.08, 0.15, 0.25, 0.35, 0.45, 0.55, 0.65, 0.75, 0.85, 1.0)
"""Quantiles, the worst first. Between two of them, one path represents all others."""


class Forecasts:
    """Several forecasts per series: Holt's method with several weights, the median of three values, and shares.

    For each series the forecast with the smallest recent error is used. A series is a partition. The last series is
    the sum of all.
    """

    def __init__(self, counts: Floats) -> None:
        values = np.append(counts, counts.sum())
        weights = np.array(SMOOTHING)
        self._level_weight, self._trend_weight = weights[:, :1], weights[:, 1:]
        self._level = np.repeat(values[None, :], len(weights), axis=0)
        self._trend = np.zeros_like(self._level)
        self._newest: deque[Floats] = deque([values] * 3, maxlen=3)
        self._shares = np.full(len(counts), 1.0 / max(1, len(counts)))
        self._seen = 0
        self._made: dict[int, deque[Floats]] = {}
        """Intervals ahead → forecasts made for them."""
        self._errors: dict[int, Floats] = {}
        self._learn_shares(values)

    def observe(self, counts: Floats, lead: int) -> None:
        """Add the events of one interval. Errors are kept of forecasts for the next interval and for `lead` ahead."""
        values = np.append(counts, counts.sum())
        for steps, made in self._made.items():
            if len(made) == steps:
                self._errors[steps] = ERROR_DECAY * self._errors[steps] + np.abs(made[0] - values)
        expected = self._level + self._trend
        level = expected + self._level_weight * (values - expected)
        self._trend = self._trend + self._trend_weight * (level - self._level - self._trend)
        self._level = level
        self._newest.append(values)
        self._learn_shares(values)
        self.note(lead)

    def note(self, lead: int) -> None:
        """Remember the present forecasts. Forget the forecasts of a former horizon."""
        for steps in self._made.keys() - {1, lead}:
            del self._made[steps], self._errors[steps]
        for steps in {1, lead}:
            each = self._each(steps)
            if steps not in self._made:
                self._errors[steps], self._made[steps] = np.zeros_like(each), deque(maxlen=steps)
            self._made[steps].append(each)

    def ahead(self, steps: int, inflow: tuple[float, ...] = ()) -> Floats:
        """Return the events expected in the interval that ends `steps` intervals from now, by partition.

        inflow: events that the previous stage will send in the next intervals, if known.
        """
        known = steps if steps in self._errors else max(self._errors, default=0)
        each = self._each(steps)
        best = np.argmin(self._errors[known], axis=0)[None] if known else np.zeros((1, each.shape[1]), np.int64)
        chosen = np.take_along_axis(each, best, axis=0)[0]
        parts, total = chosen[:-1], chosen[-1]
        if steps <= len(inflow):
            total = inflow[steps - 1]
        elif steps == 1:
            return np.asarray(parts)
        # the noise of one partition hides a trend: the sum says how many events, the partitions say where
        expected = parts.sum()
        return np.asarray(parts * (total / expected) if expected > 0 else total * self._shares)

    def _each(self, steps: int) -> Floats:
        first, second, third = self._newest
        median = np.maximum(np.minimum(first, second), np.minimum(np.maximum(first, second), third))
        own = np.concatenate((self._level + steps * self._trend, median[None]))
        by_share = np.concatenate((own[:, -1:] * self._shares, own[:, -1:]), axis=1)
        return np.asarray(np.maximum(0.0, np.concatenate((own, by_share))))

    def _learn_shares(self, values: Floats) -> None:
        if values[-1] > 0:
            self._seen += 1
            gain = max(1 - ERROR_DECAY, 1 / (self._seen + 1))
            self._shares = self._shares + gain * (values[:-1] / values[-1] - self._shares)


class Paths(NamedTuple):
    """Arrivals that may follow."""

    events: Floats
    """Events by path, slot and partition. The first path is the worst for the group as a whole."""
    weights: Floats
    """Probability of each path."""
    sizes: Floats
    """Events of an interval to plan for, by partition: the highest forecast within the horizon."""

    @property
    def middle(self) -> int:
        """Number of the median path."""
        return int(np.searchsorted(np.cumsum(self.weights), 0.5))

    def expected(self, slot_s: float) -> tuple[float, float, float, float]:
        """Return `Decision.expected`, from the events of all paths."""
        totals = self.events.sum(axis=(1, 2))
        order = np.argsort(totals)
        low, high = totals[order][np.searchsorted(np.cumsum(self.weights[order]), (0.1, 0.9)).clip(max=len(order) - 1)]
        return self.events.shape[1] * slot_s, float(totals @ self.weights), float(low), float(high)


class Ensemble:
    """Remembers the forecast of each interval and the arrivals that followed, and makes paths of both."""

    def __init__(self, history: ArrivalHistory) -> None:
        self._history = history
        self._forecasts: Forecasts | None = None
        self._window = Window(1, (2, 0))
        self._made = np.zeros((2, 0))
        """Forecasts of the next interval and of the last one of the horizon, made at the last tick, by partition."""

    def observe(self, counts: Floats, intervals: int, inflow: tuple[float, ...] = ()) -> None:
        """Add the last interval of the history, and make the forecasts of the next `intervals`."""
        known = self._history.intervals
        usual = self._history.normalised(counts)
        if len(known) == 1 or self._forecasts is None:  # nothing that was known before is of use
            self._forecasts = Forecasts(counts if usual is None else usual)
            self._forecasts.note(intervals)
            self._window = Window(self._history.most, (2, len(counts)))
            self._made = np.array([counts, counts])
        elif usual is not None:
            self._forecasts.observe(usual, intervals)
        self._window.append(self._made)
        self._made = np.array([self._forecasts.ahead(steps, inflow) for steps in (1, max(1, intervals))])

    def paths(self, intervals: int, rate: float) -> Paths:
        """Return paths of this many intervals, the worst first: the one with the highest backlog at `rate` events/s."""
        history, series = self._history, self._history.intervals
        whole, partitions = series.shape[1:]
        slots = intervals * whole
        far = np.linspace(0, 1, intervals)[:, None] if intervals > 1 else np.zeros((1, 1))
        fore = self._made[0] + far * (self._made[1] - self._made[0])  # shape (intervals, partitions)
        sizes = self._made.max(axis=0)
        moments = history.moments(intervals)
        if not len(moments) or not sizes.any():
            shape = series[-1].sum(axis=1) + 1e-9
            evenly = fore[:, None] * (shape / shape.sum())[:, None]
            return Paths(evenly.reshape(1, slots, partitions), np.ones(1), sizes)
        first = moments // whole
        made = self._window.rows
        totals = made.sum(axis=2)
        distance = np.log(np.maximum(1.0, totals[first, 0]) / max(1.0, self._made[0].sum())) / SIMILAR
        weights = FADING ** (len(series) - first) * np.exp(-(distance**2)) + 1e-12
        by_slot = series.sum(axis=2)
        then = totals[first, :1] + far[:, 0] * (totals[first, 1:] - totals[first, :1])
        ratios = fore.sum(axis=1) / np.maximum(1.0, then)  # shape (moments, intervals)
        following = by_slot.reshape(-1)[moments[:, None] + np.arange(slots)]
        factors = ratios
        if not history.in_bursts:  # an excess over the forecast may come again, but it does not grow with the forecast
            came = np.maximum(1.0, following.reshape(-1, intervals, whole).sum(axis=2))
            factors = np.where(ratios > 1, np.minimum(ratios, 1 + (fore.sum(axis=1) - then) / came), ratios)
        expected = following * np.repeat(factors, whole, axis=1)
        order = np.argsort(-backlogs(expected, rate, history.slot_s), kind="stable")
        above = np.cumsum(weights[order]) / weights.sum()
        stride = max(1, slots * partitions * len(CUTS) // MAX_CELLS)
        cuts = np.array(CUTS)[:: min(stride, len(CUTS) - 1)]  # at least one path
        cuts[-1] = 1.0
        chosen = order[np.minimum(len(order) - 1, np.searchsorted(above, (cuts[1:] + cuts[:-1]) / 2))]
        flat = series.reshape(-1, partitions)
        events = flat[moments[chosen][:, None] + np.arange(slots)]
        each = events.reshape(len(chosen), intervals, whole, partitions)
        start = made[first[chosen]]
        # partitions may have other shares of the events now than they had then
        shift = fore - ratios[chosen][:, :, None] * (start[:, :1] + far * (start[:, 1:] - start[:, :1]))
        shape = each.sum(axis=3)
        shape = shape / np.maximum(1e-9, shape.sum(axis=2, keepdims=True))
        each = factors[chosen][:, :, None, None] * each + shape[..., None] * shift[:, :, None, :]
        return Paths(np.maximum(0.0, each).reshape(len(chosen), slots, partitions), np.diff(cuts), sizes)
