"""Event rows → counts and exact percentiles. Integer microseconds throughout, so results are equal on any master."""

from collections.abc import Sequence
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from report.spark.schema import COLUMN_OF

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


def span_rows(events: DataFrame, measures: Sequence[str] = tuple(SPANS)) -> DataFrame:
    """Return measure, value_us: one row for each of `measures` (names in `SPANS`) that an event has."""
    steps = events.withColumn("handed_us", f.coalesce("accepted_us", "placed_us")).withColumn(
        "sent_us", f.coalesce("shipped_us", "done_us")
    )
    ends = {name: SPANS[name] for name in measures}
    spans = steps.select(*[(f.col(end) - f.col(begin)).alias(name) for name, (begin, end) in ends.items()])
    return spans.unpivot([], list(ends), "measure", "value_us").where(f.col("value_us").isNotNull())


def counted(rows: DataFrame, key: str) -> DataFrame:
    """Return `key`, value_us, equal: how many rows have this very value."""
    return rows.groupBy(key, "value_us").agg(f.count("*").alias("equal"))


def nearest_ranks(values: DataFrame, key: str) -> DataFrame:
    """Return `key`, events and a column for each of `PARTS_PER_MILLION` (µs): nearest-rank percentiles.

    values: of `counted`. Rank of q among n is ⌈q·n⌉, at least 1: the smallest value with so many at or below it.
    Only distinct values are sorted (measured: ten times quicker than `percentile`).
    """
    group = Window.partitionBy(key)
    up_to_here = group.orderBy("value_us").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    ranked = values.select(
        key, "value_us", f.sum("equal").over(up_to_here).alias("upto"), f.sum("equal").over(group).alias("events")
    )
    reached = {
        name: f.min(f.when(f.col("upto") * 1_000_000 >= f.col("events") * ppm, f.col("value_us")))
        for name, ppm in PARTS_PER_MILLION.items()
    }
    return ranked.groupBy(key).agg(
        f.first("events").alias("events"), *[column.alias(name) for name, column in reached.items()]
    )


def distribution(events: DataFrame) -> DataFrame:
    """Return bucket, events: latencies by `bucket`."""
    return span_rows(events, ("sla",)).groupBy(bucket("value_us").alias("bucket")).agg(f.count("*").alias("events"))


def bucket(value_us: str) -> Column:
    """Return ⌈50·log10(µs)⌉: a narrow range of latencies."""
    return f.ceil(f.log10(f.greatest(value_us, f.lit(1)).cast("double")) * BUCKETS_PER_DECADE)


def totals(events: DataFrame, *, pipeline: bool, more: Sequence[Column] = ()) -> DataFrame:
    """Return one row: dead_letters, exactly_once, doubled, counts for each topic, and what `more` aggregates."""
    counts = ~(f.col("done_us").isNull() & (f.col("dead_letters") > 0))
    doubled = _doubled(pipeline)
    return events.agg(
        f.coalesce(f.sum("dead_letters"), f.lit(0)).alias("dead_letters"),
        f.count_if(counts & ~doubled & _complete(pipeline)).alias("exactly_once"),
        f.count_if(counts & doubled).alias("doubled"),
        *[column for prefix in COLUMN_OF.values() for column in _of_topic(prefix)],
        *more,
    )


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
