"""Rows by second → the series and the distribution of a result. Plain Python."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from contracts.journal import JournalEntry, ReplicaChanged, TickRecord
from report.result import Distribution, Series
from report.spark import group_history as history
from report.spark.measures import BUCKETS_PER_DECADE
from report.spark.terms import SECOND_US, Terms

DRAIN_SHOWN_S: Final = 600
"""Seconds after the workload that the series may cover: one record with an absurd time must not make a million."""


def shown_s(duration_s: float, started_us: int, counts: Mapping[str, int | None]) -> int:
    """Return how many seconds series cover: the workload, and the drain after it.

    counts: with last_us, the latest of all intended and done times.
    """
    workload = max(1, math.ceil(duration_s))
    last = ((counts.get("last_us") or started_us) - started_us) // SECOND_US
    return min(max(workload, last + 1), workload + DRAIN_SHOWN_S)


def series(
    rows: Sequence[Mapping[str, Any]],
    done: Mapping[int, int],
    journal: Sequence[JournalEntry],
    terms: Terms,
    bound_replicas: NDArray[np.int64] | None = None,
) -> Series:
    """Return one entry for each second shown. rows: of `seconds.by_second`. done: second → events done.

    bound_replicas: of the bound, by second of the workload; None: not known.
    """
    by_second = {row["second"]: row for row in rows}
    shown = range(terms.shown_s)
    changes = history.only(journal, ReplicaChanged)

    def latency(name: str) -> tuple[float | None, ...]:
        values = (by_second.get(second, {}).get(name) for second in shown)
        return tuple(None if value is None else value / 1e6 for value in values)

    def replicas(spans: Sequence[history.Span]) -> tuple[int | None, ...]:
        if not changes:
            return (None,) * terms.shown_s
        return history.count_each_second(spans, terms.started_us, terms.shown_s)

    return Series(
        arrivals=tuple(by_second.get(second, {}).get("arrivals", 0) for second in shown),
        done=tuple(done.get(second, 0) for second in shown),
        p50_s=latency("p50"),
        p99_s=latency("p99"),
        max_s=latency("max"),
        requested_replicas=replicas(history.paid(changes)),
        ready_replicas=replicas(history.serving(changes)),
        lag=history.lag_each_second(history.only(journal, TickRecord), terms.started_us, terms.shown_s),
        bound_replicas=() if bound_replicas is None else _filled(bound_replicas.tolist(), terms.shown_s),
    )


def _filled(values: Sequence[int], length: int) -> tuple[int | None, ...]:
    """Return `values` and nothing after them: the drain needs no replicas of the bound."""
    return (*values[:length], *[None] * (length - len(values)))


def distribution(buckets: Mapping[int, int], total: int) -> Distribution:
    """Cumulate the buckets: at each upper edge stands the exact share of `total` events done within it."""
    share, latency_s, below = [], [], 0
    for bucket, events in sorted(buckets.items()):
        below += events
        share.append(below / total)
        latency_s.append(10 ** (bucket / BUCKETS_PER_DECADE) / 1e6)
    return Distribution(share=tuple(share), latency_s=tuple(latency_s))
