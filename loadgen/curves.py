"""What workloads are drawn with: rates over time, and whole events made of them."""

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

IntArray: TypeAlias = npt.NDArray[np.int64]
FloatArray: TypeAlias = npt.NDArray[np.float64]
Knots: TypeAlias = tuple[tuple[float, float], ...]
"""(t in s, rate in events/s) each, t growing from 0."""


def half_cosine(knots: Knots) -> FloatArray:
    """Return the rate (events/s) in the middle of each second of a curve that eases from knot to knot.

    Between two of them the rate is r0 + (r1 − r0)·(1 − cos(π·(t − t0)/(t1 − t0)))/2.
    """
    times, rates = np.array(knots, dtype=np.float64).T
    t = np.arange(0.5, times[-1])
    left = np.searchsorted(times, t, side="right") - 1
    t0, t1, r0, r1 = times[left], times[left + 1], rates[left], rates[left + 1]
    return np.asarray(r0 + (r1 - r0) * (1 - np.cos(np.pi * (t - t0) / (t1 - t0))) / 2)


def straight(knots: Knots) -> FloatArray:
    """Return the rate (events/s) in the middle of each second of a curve of straight lines from knot to knot.

    Two knots at the same time make a step.
    """
    times, rates = np.array(knots, dtype=np.float64).T
    return np.asarray(np.interp(np.arange(0.5, times[-1]), times, rates))


def whole_events(rate: npt.NDArray[np.floating[Any]]) -> IntArray:
    """Return n(t) = ⌈rate⌉."""
    return np.asarray(np.ceil(rate), dtype=np.int64)
