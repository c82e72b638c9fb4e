"""Measures of live and simulated runs, and confidence intervals over several runs.

Times are integer microseconds, so that equal runs have exactly equal figures.
"""

from collections.abc import Sequence
from fractions import Fraction
from math import ceil, floor
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt

RESAMPLES: Final = 10_000
INTERVAL_QUANTILES: Final = (0.025, 0.975)
"""Quantiles of the resampled means that bound a 95 % interval."""
Floats = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
MINUTE_US: Final = 60_000_000


def nearest_rank(total: int, percentile: float) -> int:
    """Return the rank of the percentile among `total` sorted values, counted from 1: ⌈percentile·total⌉.

    The percentile is an exact decimal: 0.999 of 1000 values is rank 999, although the binary product may exceed 999.
    Raises ValueError without values, or unless 0 < percentile ≤ 1.
    """
    if total < 1 or not 0 < percentile <= 1:
        raise ValueError(f"percentile {percentile} of {total} values is undefined: use 0 < percentile ≤ 1")
    return ceil(Fraction(str(percentile)) * total)


def percentile_us(latency_us: IntArray, percentile: float) -> int:
    """Return the nearest-rank percentile, which is one of the values. Raises ValueError without values."""
    rank = nearest_rank(len(latency_us), percentile)
    return int(np.partition(latency_us, rank - 1)[rank - 1])


def in_sla_share(latency_us: IntArray, latency_target_s: float, lost: int = 0) -> float:
    """Return the share of events that took at most the latency target; 1.0 without events.

    latency_us: latencies of the completed events. lost: number of events that were never completed, all of them late.
    """
    total = len(latency_us) + lost
    within = int(np.count_nonzero(latency_us <= round(latency_target_s * 1e6)))
    return within / total if total else 1.0


def per_second_packing(counts: IntArray, *, service_rate: float, latency_target_s: float, bursts: bool) -> IntArray:
    """Return the fewest replicas for the events of each second: ⌈Σ min(n, c) / c⌉ over partitions, at least 1.

    n: events of a partition in the second. c: capacity, the events that a replica serves in a second. For bursts and a
    latency target (W) up to 1 s it is service rate (μ) · W, else μ. A partition counts as at most c, because replicas
    cannot share it. Starts and handovers are free. counts: n, shape (seconds, partitions). service_rate: in events/s.
    """
    capacity = bin_capacity(service_rate=service_rate, latency_target_s=latency_target_s, bursts=bursts)
    return bins(np.minimum(counts, capacity).sum(axis=1, dtype=np.int64), capacity)


def bins(events: IntArray, capacity: int) -> IntArray:
    """Return the replicas of each second, at least 1. events, capacity: Σ min(n, c) and c of `per_second_packing`."""
    return np.maximum(1, -(-events // capacity))


def bin_capacity(*, service_rate: float, latency_target_s: float, bursts: bool) -> int:
    """Return the capacity c of `per_second_packing`, in events. Raises ValueError if it is below 1."""
    capacity = floor(service_rate * (latency_target_s if bursts and latency_target_s <= 1 else 1.0) + 1e-9)
    if capacity < 1:
        raise ValueError(f"a replica with μ = {service_rate} events/s serves no event within {latency_target_s} s")
    return capacity


class Interval(msgspec.Struct, frozen=True):
    """A mean with its 95 % confidence interval, whose width is 0 for a single value and for equal values."""

    mean: float
    low: float
    high: float


class PairedDifference(Interval, frozen=True):
    """Mean of paired differences. A difference is a run's value minus that of the reference with the same seed."""

    distinguishable: bool
    """Whether the interval excludes 0."""


def bootstrap_interval(values: Sequence[float]) -> Interval:
    """Return the mean with its 95 % percentile-bootstrap interval. Equal values always give equal intervals.

    For twenty normally distributed values, the interval contains the true mean in 93 % of cases. Raises ValueError
    without values, and for NaN or infinity.
    """
    return Interval(*_bounds(_finite(values)))


def paired_difference(a: Sequence[float], b: Sequence[float]) -> PairedDifference:
    """Return the mean of a[i] − b[i] with its interval. Both values of a pair should have the same seed.

    Raises ValueError for different numbers of values, without values, and for NaN or infinity.
    """
    mean, low, high = _bounds(_finite(a) - _finite(b))
    return PairedDifference(mean, low, high, distinguishable=not low <= 0 <= high)


def pareto_front(points: Sequence[tuple[float, float]]) -> list[int]:
    """Return the indices of the points (benefit, cost) on the Pareto front, by increasing cost.

    A point is not on the front if another point is at least as good in benefit and cost, and better in one of them.
    Of equal points, either all are on the front or none.
    """
    order = sorted(range(len(points)), key=lambda index: (points[index][1], -points[index][0]))
    front: list[int] = []
    for index in order:
        if not front or points[index][0] > points[front[-1]][0] or points[index] == points[front[-1]]:
            front.append(index)
    return front


def _bounds(values: Floats) -> tuple[float, float, float]:
    if (values == values[0]).all():
        value = float(values[0])  # not summed: rounding would make equal runs differ
        return value, value, value
    chosen = np.random.default_rng(1).integers(0, len(values), (RESAMPLES, len(values)))
    low, high = np.quantile(values[chosen].mean(axis=1), INTERVAL_QUANTILES)
    return float(values.mean()), float(low), float(high)


def _finite(values: Sequence[float]) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    if not len(array):
        raise ValueError("no values: the mean is undefined")
    if not np.isfinite(array).all():
        raise ValueError(f"{array[~np.isfinite(array)][0]} is not a value that can be averaged")
    return array
