"""From values to pixels, and where the ticks stand."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

TIME_STEPS_S: Final = (
    1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 21_600, 43_200, 86_400,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Scale:
    """Values from `low` to `high` stand from pixel `start` to pixel `end`."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def at(self, values: ArrayLike) -> NDArray[np.float64]:
        """Return the pixels of the values; what a logarithm cannot show stands at its low end."""
        given = np.asarray(values, float)
        low, high = self.low, self.high
        if self.log:
            given, low, high = np.log10(np.maximum(given, low)), np.log10(low), np.log10(high)
        return np.asarray(self.start + (given - low) / (high - low) * (self.end - self.start))

    def ticks(self, count: int) -> list[float]:
        """Return about `count` round values within the scale."""
        return decades(self.low, self.high, count) if self.log else round_ticks(self.low, self.high, count)


def round_ticks(low: float, high: float, count: int) -> list[float]:
    """Return multiples of 1, 2 or 5 times a power of ten, about `count` of them."""
    rough = (high - low) / max(count, 1)
    power = 10.0 ** np.floor(np.log10(rough))
    fitting = [float(power * factor) for factor in (0.5, 1, 2, 5, 10)]
    largest = next(number for number, step in enumerate(fitting) if step >= rough * 0.9)
    found = (_multiples(low, high, step) for step in reversed(fitting[: largest + 1]))
    return next((ticks for ticks in found if ticks), [])


def _multiples(low: float, high: float, step: float) -> list[float]:
    first, last = int(np.ceil(low / step - 1e-9)), int(np.floor(high / step + 1e-9))
    return [round(k * step, 12) for k in range(first, last + 1)]


def decades(low: float, high: float, count: int) -> list[float]:
    """Return 1, 2, 5 of each decade while they fit, then 1 and 3, then the decades themselves."""
    first, last = int(np.floor(np.log10(low))), int(np.ceil(np.log10(high)))
    found: list[float] = []
    for factors in ((1, 2, 5), (1, 3), (1,)):
        found = [factor * 10.0**power for power in range(first, last + 1) for factor in factors]
        found = [value for value in found if low * (1 - 1e-9) <= value <= high * (1 + 1e-9)]
        if len(found) <= count:
            break
    return found[:: max(1, -(-len(found) // max(count, 1)))]


def time_ticks(until_s: float, count: int) -> list[float]:
    """Return at most `count` + 1 moments from 0, at steps that clocks know."""
    step = next((one for one in TIME_STEPS_S if until_s / one <= count), TIME_STEPS_S[-1])
    return [float(at) for at in range(0, int(until_s) + 1, step)]


def clock(at_s: float) -> str:
    """Return "0:07", "12:30" or "1:00:00"."""
    whole = round(at_s)
    hours, minutes, seconds = whole // 3600, whole // 60 % 60, whole % 60
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
