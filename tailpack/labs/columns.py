"""Measured values in a row, and their nearest-rank percentiles."""

from collections.abc import Iterable, Sequence

import numpy as np

from bench.handover.evidence import IntArray
from report.measures import percentile_us


def column(values: Iterable[int]) -> IntArray:
    """Return them as an array."""
    return np.fromiter(values, dtype=np.int64)


def rank_s(values_s: Sequence[float], percentile: float) -> float | None:
    """Return the nearest-rank percentile of seconds, to the microsecond; None of nothing."""
    return percentile_us(column(round(1e6 * one) for one in values_s), percentile) / 1e6 if values_s else None
