"""How sure figures are: bootstrap intervals and paired differences over runs, and the Pareto front."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

RESAMPLES: Final = 10_000
CONFIDENCE: Final = 0.95
ENDS: Final = ((1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2)
"""Quantiles of the draws between which the interval lies."""
Floats = NDArray[np.float64]


class Against(msgspec.Struct, frozen=True, kw_only=True):
    """Mean of paired differences, one's own minus the reference on the same seed, and where it may lie."""

    mean: float
    low: float
    high: float
    distinguishable: bool
    """The interval leaves 0 out; where it does not, the two cannot be told apart."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean and where it may lie. One value, or equal ones, have no width: of their spread nothing is known."""

    mean: float
    low: float
    high: float


def bootstrap_interval(values: Sequence[float]) -> Interval:
    """Return the mean with its percentile-bootstrap interval: seeded, so equal values give equal intervals.

    With twenty normally distributed values it covers the true mean in 93 % of cases where 95 % are asked for.
    Raises ValueError for no value, NaN or infinity.
    """
    return Interval(*_bounds(_finite(values)))


def paired_difference(a: Sequence[float], b: Sequence[float]) -> Against:
    """Return the mean of a[i] − b[i] with its interval. Pairs share a seed, so what both suffer cancels out.

    Raises ValueError for different numbers of values, and as `bootstrap_interval` does.
    """
    if len(a) != len(b):
        raise ValueError(f"{len(a)} values cannot be paired with {len(b)}")
    return _against(*_bounds(_finite(a) - _finite(b)))


def pareto_front(points: Sequence[tuple[float, float]]) -> list[int]:
    """Return the indices of the points (benefit, cost) that no other beats, by growing cost.

    Beaten is who has another with at least its benefit at no more cost, and better in one of them. Equal points stand
    together. Raises ValueError for NaN.
    """
    if any(value != value for point in points for value in point):  # noqa: PLR0124  NaN differs from itself
        raise ValueError("a point is not a number")
    order = sorted(range(len(points)), key=lambda one: (points[one][1], -points[one][0]))
    front: list[int] = []
    for one in order:
        if not front or points[one][0] > points[front[-1]][0] or points[one] == points[front[-1]]:
            front.append(one)
    return front


def _against(mean: float, low: float, high: float) -> Against:
    return Against(mean=mean, low=low, high=high, distinguishable=not low <= 0 <= high)


def _bounds(values: Floats) -> tuple[float, float, float]:
    """Return mean, low, high."""
    if (values == values[0]).all():
        value = float(values[0])  # without the rounding of a sum, so that equal runs differ by exactly 0
        return value, value, value
    chosen = np.random.default_rng(1).integers(0, len(values), (RESAMPLES, len(values)))
    low, high = np.quantile(values[chosen].mean(axis=1), ENDS)
    return float(values.mean()), float(low), float(high)


def _finite(values: Sequence[float]) -> NDArray[np.float64]:
    """Return the values as an array."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or not len(array):
        raise ValueError("there is no mean of no value")
    if not np.isfinite(array).all():
        raise ValueError(f"{array[~np.isfinite(array)][0]} is not a value that can be averaged")
    return array
