"""Forecasts of the events in coming intervals, by partition and in total."""

from collections import deque
from typing import Final

import numpy as np

from autoscaler.jit import Floats

SMOOTHING: Final = np.array(((1.0, 0.0), (1.0, 1.0), (0.7, 0.2), (0.3, 0.06), (0.1, 0.01))).T[:, :, None]
"""Weights of the newest value in level and trend (Holt's method)."""
ERROR_DECAY: Final = 0.95
"""Factor, for each interval, on the weight of earlier forecast errors and of earlier shares of the partitions."""


class Forecasts:
    """Several forecasts per series: Holt's method with several weights, the median of three values, and shares.

    For each series the forecast with the smallest recent error is used. A series is a partition. The last series is
    the sum of all. counts: events of the first interval, by partition.
    """

    def __init__(self, counts: Floats) -> None:
        values = np.append(counts, counts.sum())
        self._level = np.repeat(values[None], SMOOTHING.shape[1], axis=0)
        self._trend = np.zeros_like(self._level)
        self._newest = deque([values] * 3, maxlen=3)
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
        before, expected, (of_level, of_trend) = self._level, self._level + self._trend, SMOOTHING
        self._level = expected + of_level * (values - expected)
        self._trend = self._trend + of_trend * (self._level - before - self._trend)
        self._newest.append(values)
        self._learn_shares(values)
        self.remember(lead)

    def ahead(self, steps: int, inflow: tuple[float, ...] = ()) -> Floats:
        """Return the events expected in the interval that ends `steps` intervals from now, by partition.

        inflow: events that the previous stage will send in the next intervals, if known. Requires a `remember` before.
        """
        each = self._made[steps][-1] if steps in self._made else self._each(steps)
        errors = self._errors[steps if steps in self._errors else max(self._errors)]
        chosen = each[errors.argmin(axis=0), np.arange(each.shape[1])]
        parts, total = chosen[:-1], chosen[-1]
        if steps <= len(inflow):
            total = inflow[steps - 1]
        elif steps == 1:
            return np.asarray(parts)
        # the noise of one partition hides a trend: the sum says how many events, the partitions say where
        expected = parts.sum()
        return np.asarray(parts * (total / expected) if expected > 0 else total * self._shares)

    def remember(self, lead: int) -> None:
        """Remember the present forecasts. Forget those of a former lead."""
        for steps in self._made.keys() - {1, lead}:
            del self._made[steps], self._errors[steps]
        for steps in {1, lead}:
            each = self._each(steps)
            self._errors.setdefault(steps, np.zeros_like(each))
            self._made.setdefault(steps, deque(maxlen=steps)).append(each)

    def _each(self, steps: int) -> Floats:
        median = np.sort(self._newest, axis=0)[1]
        own = np.concatenate((self._level + steps * self._trend, median[None]))
        by_share = np.concatenate((own[:, -1:] * self._shares, own[:, -1:]), axis=1)
        return np.asarray(np.maximum(0.0, np.concatenate((own, by_share))))

    def _learn_shares(self, values: Floats) -> None:
        if values[-1] > 0:
            self._seen += 1
            gain = max(1 - ERROR_DECAY, 1 / (self._seen + 1))
            self._shares = self._shares + gain * (values[:-1] / values[-1] - self._shares)
