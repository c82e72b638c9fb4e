"""Event rows → counts and exact percentiles. Integer microseconds throughout, so results are equal on any master."""

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from bench.latency_job.schema import COLUMN_OF

PARTS_PER_MILLION: Final = {
    "p50": 500_000, "p90": 900_000, "p95": 950_000, "p99": 990_000, "p999": 999_000, "p9999": 999_900, "max": 1_000_000,
}  # fmt: skip
"""Quantiles as integers: in binary fractions ⌈q·n⌉ may be one too high."""

BUCKETS_PER_DECADE: Final = 50
"""Resolution of the latency distribution: edges 4.7 % apart."""

SPANS: Final = {
    "sla": ("intended_us", "done_us"),
    "lateness": ("intended_us", "placed_us"),
    "sending": ("placed_us", "accepted_us"),
    "queueing": ("handed_us", "received_us"),
    "serving": ("received_us", "done_us"),
    "shipping": ("done_us", "shipped_us"),
    "notifying": ("sent_us", "notified_us"),
    "end-to-end": ("intended_us", "notified_us"),
}
"""Measure → the two steps between which it lies. `handed_us`: accepted, or placed in payment-only runs;
`sent_us`: shipped, or done where nothing is shipped."""


def measured_rows(events: DataFrame, started_us: int) -> DataFrame:
    """Return measure, slot, value_us: one row for each number that is to be counted or ranked.

    Spans have slot 0. `second`: SLA latency by second of intent. `arrivals`, `done`: second of the run, no value.
    `distribution`: bucket of the SLA latency, ⌈50·log10(µs)⌉, no value.
    """
    steps = events.withColumn("handed_us", f.coalesce("accepted_us", "placed_us")).withColumn(
        "sent_us", f.coalesce("shipped_us", "done_us")
    )
    latency = f.col("done_us") - f.col("intended_us")
    bucket = f.ceil(f.log10(f.greatest(latency, f.lit(1)).cast("double")) * BUCKETS_PER_DECADE)
    zero = f.lit(0).cast("long")
    spans = steps.select(*[(f.col(end) - f.col(begin)).alias(name) for name, (begin, end) in SPANS.items()])
    rows = spans.unpivot([], list(SPANS), "measure", "value_us").select("measure", zero.alias("slot"), "value_us")
    for measure, slot, value in (
        ("second", _second("intended_us", started_us), latency),
        ("arrivals", _second("intended_us", started_us), zero),
        ("done", _second("done_us", started_us), zero),
        ("distribution", f.when(latency.isNotNull(), bucket), zero),
    ):
        rows = rows.union(events.select(f.lit(measure), slot, value))
    return rows.where(f.col("value_us").isNotNull() & f.col("slot").isNotNull())


def nearest_ranks(rows: DataFrame) -> DataFrame:
    """Return measure, slot, events and a column for each of `PARTS_PER_MILLION` (µs): nearest-rank percentiles.

    Rank of q among n is ⌈q·n⌉, at least 1: the smallest value with so many values at or below it.
    Equal values are counted first; only distinct values are sorted (measured: ten times quicker than `percentile`).
    """
    counted = rows.groupBy("measure", "slot", "value_us").agg(f.count("*").alias("equal"))
    group = Window.partitionBy("measure", "slot")
    up_to_here = group.orderBy("value_us").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    ranked = counted.select(
        "measure",
        "slot",
        "value_us",
        f.sum("equal").over(up_to_here).alias("upto"),
        f.sum("equal").over(group).alias("events"),
    )
    reached = {
        name: f.min(f.when(f.col("upto") * 1_000_000 >= f.col("events") * ppm, f.col("value_us")))
        for name, ppm in PARTS_PER_MILLION.items()
    }
    return ranked.groupBy("measure", "slot").agg(
        f.first("events").alias("events"), *[column.alias(name) for name, column in reached.items()]
    )


def totals(events: DataFrame, latency_target_us: int, *, pipeline: bool) -> DataFrame:
    """Return one row: events, in_sla, lost, refused, dead_letters, exactly_once, doubled, and counts for each topic."""
    refused = f.col("done_us").isNull() & (f.col("dead_letters") > 0)
    done, doubled = f.col("done_us").isNotNull(), _doubled(pipeline)
    in_sla = f.col("done_us") - f.col("intended_us") <= latency_target_us
    return events.agg(
        f.count_if(~refused).alias("events"),
        f.count_if(in_sla).alias("in_sla"),
        f.count_if(~refused & ~done).alias("lost"),
        f.count_if(refused).alias("refused"),
        f.coalesce(f.sum("dead_letters"), f.lit(0)).alias("dead_letters"),
        f.count_if(~refused & ~doubled & _complete(pipeline)).alias("exactly_once"),
        f.count_if(~refused & doubled).alias("doubled"),
        *[column for prefix in COLUMN_OF.values() for column in _of_topic(prefix)],
    )


def order_violations(events: DataFrame) -> DataFrame:
    """Return one row: how many events were done before an event that lay ahead of them in their payment partition."""
    ahead = Window.partitionBy("partition").orderBy("offset").rowsBetween(Window.unboundedPreceding, -1)
    known = events.where(f.col("done_us").isNotNull() & f.col("offset").isNotNull())
    latest_ahead = known.select("done_us", f.max("done_us").over(ahead).alias("latest_ahead_us"))
    return latest_ahead.agg(f.count_if(f.col("done_us") < f.col("latest_ahead_us")).alias("order_violations"))


def _doubled(pipeline: bool) -> Column:
    if not pipeline:
        return f.col("settled_differ")
    twice = (f.col("shipped_records") > 1) | (f.col("notified_records") > 1)
    shipped_though_declined = ~f.coalesce("accepted", f.lit(True)) & (f.col("shipped_records") > 0)
    return f.col("settled_differ") | twice | shipped_though_declined


def _complete(pipeline: bool) -> Column:
    settled = f.col("settled_records") > 0
    if not pipeline:
        return settled
    shipped = (f.col("shipped_records") > 0) | ~f.coalesce("accepted", f.lit(True))
    return settled & shipped & (f.col("notified_records") > 0)


def _of_topic(prefix: str) -> list[Column]:
    records = f.col(f"{prefix}_records")
    return [
        f.coalesce(f.sum(records), f.lit(0)).alias(f"{prefix}_records"),
        f.coalesce(f.sum(f.greatest(records - 1, f.lit(0))), f.lit(0)).alias(f"{prefix}_duplicates"),
        f.count_if(f"{prefix}_differ").alias(f"{prefix}_differing"),
    ]


def _second(column: str, started_us: int) -> Column:
    return f.floor((f.col(column) - started_us) / 1_000_000)
