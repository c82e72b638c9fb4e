"""Events of which nothing is known but themselves: what was promised is said by whoever asks, the rest is read off."""

import math
from dataclasses import dataclass
from typing import Final

import msgspec
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from report.run_info import RunInfo
from report.spark.errors import ReportError

EARLIEST_US: Final = 946_684_800_000_000
"""The year 2000: what was intended before has another unit, or another clock."""
LONGEST_DAYS: Final = 40
"""A series has an entry for each second."""


@dataclass(frozen=True, slots=True)
class Promise:
    """What was promised of events of which no run.json tells it."""

    latency_target_s: float
    percentile: float
    """The share that is to be done within it."""


def unknown_run(name: str, source: str, promise: Promise) -> RunInfo:
    """Return the description of a run that nobody described. Raises ReportError for a promise that is none."""
    target_s, share = promise.latency_target_s, promise.percentile
    if not (0 < target_s < math.inf and 0 < share <= 1):
        raise ReportError(
            f"{share:g} within {target_s:g} s was never promised: a latency target is more than 0 seconds, "
            "a percentile a share of 1, as 0.999"
        )
    return RunInfo(
        run=name,
        scenario={"name": source},
        policy="unknown",
        seed=0,
        topology="payment-only",
        bootstrap_servers="",
        client_properties="",
        payment_partitions=0,
        latency_target_s=target_s,
        percentile=share,
        duration_s=0.0,
    )


def bounded(run: RunInfo, events: DataFrame, *, now_us: int) -> RunInfo:
    """Give `run` the start (whole second) and the duration that its events have; those of the future aside.

    Raises ReportError when no event has a time that can be, or they lie too far apart.
    """
    can_be = f.when(f.col("intended_us").between(EARLIEST_US, now_us), f.col("intended_us"))
    first_us, last_us = events.agg(f.min(can_be), f.max(can_be)).collect()[0]
    if first_us is None:
        raise ReportError("no event was intended between 2000 and now; are its times microseconds since 1970, UTC?")
    started_us = first_us // 1_000_000 * 1_000_000
    duration_s = (last_us - started_us) // 1_000_000 + 1
    if duration_s > LONGEST_DAYS * 86_400:
        raise ReportError(
            f"its events lie {duration_s / 86_400:,.0f} days apart; a report is of {LONGEST_DAYS} at most"
        )
    return msgspec.structs.replace(run, started_us=started_us, duration_s=float(duration_s))
