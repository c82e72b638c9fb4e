"""What a run is measured by, in numpy. The report's Spark job computes the same definitions; a test holds them equal.

Times are integer microseconds, so that both give the same value to the last digit.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor
from typing import Final

import numpy as np
import numpy.typing as npt

from autoscaler.packing.least_bins import least_bins

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


@dataclass(frozen=True, slots=True, eq=False)
class PerSecondPacking:
    """Bins that each second's own events need at least, shape (seconds,). What waits longer may need fewer."""

    replicas: IntArray
    """The least, at least 1; fewer are impossible."""
    enough: IntArray
    """Bins that do. More than `replicas` only in seconds in which the search for the least was given up."""

    @property
    def minutes(self) -> float:
        """Replica-minutes of the least bins."""
        return int(self.replicas.sum()) / 60

    @property
    def gap_minutes(self) -> float:
        """Replica-minutes by which the least may lie above `minutes`; 0: they are the least."""
        return int((self.enough - self.replicas).sum()) / 60


def packing_replica_minutes(counts: IntArray, *, service_rate: float, latency_target_s: float, bursts: bool) -> float:
    """Return the replica-minutes of the least bins that hold each second's own events."""
    return per_second_packing(
        counts, service_rate=service_rate, latency_target_s=latency_target_s, bursts=bursts
    ).minutes


def per_second_packing(
    counts: IntArray, *, service_rate: float, latency_target_s: float, bursts: bool
) -> PerSecondPacking:
    """Return the least number of bins, at least 1, that hold each second's own events.

    With bursts and W ≤ 1 s a bin holds μ·W events, else μ; a partition above that has a bin of its own. Nothing is lost
    to start-up, handover or hysteresis. counts: events, shape (seconds, partitions). service_rate: μ in events/s.
    """
    capacity = bin_capacity(service_rate=service_rate, latency_target_s=latency_target_s, bursts=bursts)
    rows, kind = np.unique(np.sort(counts, axis=1)[:, ::-1], axis=0, return_inverse=True)
    enough, least = least_bins(np.ascontiguousarray(rows, np.int64), capacity)
    return PerSecondPacking(*(np.maximum(bins, 1)[kind.reshape(-1)] for bins in (least, enough)))


def bin_capacity(*, service_rate: float, latency_target_s: float, bursts: bool) -> int:
    """Return the events of one second that a bin of the per-second packing holds; see `per_second_packing`.

    Raises ValueError where that is not a single one.
    """
    capacity = floor(service_rate * (latency_target_s if bursts and latency_target_s <= 1 else 1.0) + 1e-9)
    if capacity < 1:
        raise ValueError(f"μ = {service_rate} events/s and W = {latency_target_s} s leave no room for one event")
    return capacity
