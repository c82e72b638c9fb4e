"""Exact percentiles of many groups without putting all of their values in order.

Values are counted in narrow buckets first. That says in which bucket of its group each percentile lies, so only the
values of these buckets, a few in a hundred, are looked at one by one in a second pass.
"""

from collections.abc import Sequence
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from report.spark.measures import PARTS_PER_MILLION

WIDTH_US: Final = 512
"""Of a bucket: few values to look at. Not a logarithm: that of each value would cost more than all the rest."""
UP_TO_HERE: Final = (Window.unboundedPreceding, Window.currentRow)


def ranks_within(values: DataFrame, key: str, names: Sequence[str]) -> DataFrame:
    """Return `key`, events, a column for each of `names` (in PARTS_PER_MILLION), and max: nearest ranks, µs.

    values: `key` (may be null), value_us (rows without are left out). They are read twice.
    """
    known = values.where("value_us is not null").withColumn("bucket", f.expr(f"value_us div {WIDTH_US}"))
    wanted = _wanted(known, key, names).select(
        f.col(key).alias("group"), f.col("bucket").alias("in_bucket"), "events", "max", *map(_rank, names)
    )
    here = f.col(key).eqNullSafe(f.col("group")) & (f.col("bucket") == f.col("in_bucket"))
    equal = (
        known.join(f.broadcast(wanted), here)
        .groupBy(key, "bucket", "value_us")
        .agg(f.count("*").alias("equal"), *[f.max(name).alias(name) for name in ("events", "max", *map(_rank, names))])
    )
    order = Window.partitionBy(key, "bucket").orderBy("value_us")
    ranked = equal.withColumn("upto", f.sum("equal").over(order.rowsBetween(*UP_TO_HERE)))
    return ranked.groupBy(key).agg(
        f.max("events").alias("events"),
        *[f.min(f.when(f.col("upto") >= f.col(_rank(name)), f.col("value_us"))).alias(name) for name in names],
        f.max("max").alias("max"),
    )


def _wanted(known: DataFrame, key: str, names: Sequence[str]) -> DataFrame:
    """Return `key`, bucket, events and max of the group, and for each name its rank in the bucket (null: elsewhere)."""
    counts = known.groupBy(key, "bucket").agg(f.count("*").alias("here"), f.max("value_us").alias("highest"))
    group = Window.partitionBy(key)
    order = group.orderBy("bucket").rowsBetween(*UP_TO_HERE)
    placed = counts.select(
        key,
        "bucket",
        (f.sum("here").over(order) - f.col("here")).alias("below"),
        "here",
        f.sum("here").over(group).alias("events"),
        f.max("highest").over(group).alias("max"),
    )
    ranks = {_rank(name): _rank_in_group(PARTS_PER_MILLION[name]) - f.col("below") for name in names}
    inside = [f.when((rank > 0) & (rank <= f.col("here")), rank).alias(name) for name, rank in ranks.items()]
    return placed.select(key, "bucket", "events", "max", *inside).where(f.coalesce(*ranks).isNotNull())


def _rank_in_group(ppm: int) -> Column:
    """Return ⌈n·q⌉, counted from 1."""
    return f.expr(f"greatest((events * {ppm}L + 999999L) div 1000000L, 1L)")


def _rank(name: str) -> str:
    return f"rank_{name}"
