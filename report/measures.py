"""What a run is measured by, in numpy. The report's Spark job computes the same definitions; a test holds them equal.

Times are integer microseconds, so that both give the same value to the last digit.
"""

from collections.abc import Sequence
from fractions import Fraction
from math import ceil, floor
from typing import Final

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
MINUTE_US: Final = 60_000_000


def nearest_rank(total: int, percentile: float) -> int:
    """Return which of `total` sorted values is the percentile, counted from 1.

    It is the smallest rank with at least percentile·total values at or below it. The percentile is taken as the decimal
    it is written as: 0.999 of 1000 values is rank 999, although 0.999 · 1000 may exceed 999 in binary.
    """
    if total < 1 or not 0 < percentile <= 1:
        raise ValueError(f"no percentile {percentile} of {total} values: needs 0 < percentile ≤ 1 and a value")
    return ceil(Fraction(str(percentile)) * total)


def percentile_us(latency_us: IntArray, percentile: float) -> int:
    """Return the nearest-rank percentile, one of the values given. Raises ValueError where there is none."""
    rank = nearest_rank(len(latency_us), percentile)
    return int(np.partition(latency_us, rank - 1)[rank - 1])


def in_sla_share(latency_us: IntArray, latency_target_s: float, lost: int = 0) -> float:
    """Return the share of events within W (≤). `lost` events were never completed: they are late. 1.0 of no events."""
    total = len(latency_us) + lost
    within = int(np.count_nonzero(latency_us <= round(latency_target_s * 1e6)))
    return within / total if total else 1.0


def replica_minutes(changes: Sequence[tuple[int, float]], started_us: int, duration_s: float) -> float:
    """Return ∫ requested replicas dt / 60 over [0, duration_s) of the workload.

    changes: (µs since the epoch, replicas requested from then on, or the sum of their prices), in order of time; those
    before the start say what holds at the start.
    """
    ended_us = started_us + round(duration_s * 1e6)
    area_us, at_us, replicas = 0.0, started_us, 0.0
    for changed_us, requested in changes:
        now_us = min(max(changed_us, started_us), ended_us)
        area_us += replicas * (now_us - at_us)
        at_us, replicas = now_us, requested
    return (area_us + replicas * (ended_us - at_us)) / MINUTE_US


def packing_replica_minutes(counts: IntArray, *, service_rate: float, latency_target_s: float, bursts: bool) -> float:
    """Return the replica-minutes of the per-second packing."""
    replicas = per_second_packing(counts, service_rate=service_rate, latency_target_s=latency_target_s, bursts=bursts)
    return int(replicas.sum()) / 60


def per_second_packing(counts: IntArray, *, service_rate: float, latency_target_s: float, bursts: bool) -> IntArray:
    """Return how many replicas each second's own events need at least: the larger of what all need and the largest.

    With bursts and W ≤ 1 s a replica holds c = μ·W events of a second, else c = μ. All need ⌈Σ min(n, c) / c⌉; the
    largest partition needs one, however large it is, for nobody can share it. Nothing is lost to start-up, handover or
    hysteresis. counts: events, shape (seconds, partitions). service_rate: μ in events/s.
    """
    capacity = bin_capacity(service_rate=service_rate, latency_target_s=latency_target_s, bursts=bursts)
    replicas: IntArray = np.maximum(1, -(-np.minimum(counts, capacity).sum(axis=1, dtype=np.int64) // capacity))
    return replicas


def bin_capacity(*, service_rate: float, latency_target_s: float, bursts: bool) -> int:
    """Return the events of one second that a bin of the per-second packing holds; see `per_second_packing`.

    Raises ValueError where that is not a single one.
    """
    capacity = floor(service_rate * (latency_target_s if bursts and latency_target_s <= 1 else 1.0) + 1e-9)
    if capacity < 1:
        raise ValueError(f"μ = {service_rate} events/s and W = {latency_target_s} s leave no room for one event")
    return capacity
