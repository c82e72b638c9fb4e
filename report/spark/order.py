"""Order and completeness of the payment partitions, by offset."""

from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

BLOCK_OFFSETS: Final = 1_024
"""Offsets that are put in order at once, so that one large partition is no single task."""


def order_violations(events: DataFrame) -> DataFrame:
    """Return one row: how many events were done before an event that lay ahead of them in their payment partition."""
    return overtakers(events).agg(f.count("*").alias("order_violations"))


def overtakers(events: DataFrame) -> DataFrame:
    """Return the events that were done before one that lay ahead of them in their partition.

    Each block of offsets is put in order by itself; what lay in earlier blocks is known by their latest `done_us`.
    One number names the block of a partition: Spark compares the first column of a sort far quicker than all others.
    """
    place = f.shiftleft(f.col("partition").cast("long"), 40) + f.expr(f"offset div {BLOCK_OFFSETS}")
    known = _placed(events).select("partition", "offset", "done_us", place.alias("block"))
    blocks = known.groupBy("partition", "block").agg(f.max("done_us").alias("latest_us"))
    earlier = Window.partitionBy("partition").orderBy("block").rowsBetween(Window.unboundedPreceding, -1)
    before = blocks.select("block", f.max("latest_us").over(earlier).alias("earlier_us"))
    ahead = Window.partitionBy("block").orderBy("offset").rowsBetween(Window.unboundedPreceding, -1)
    within = known.withColumn("ahead_us", f.max("done_us").over(ahead))
    return within.join(f.broadcast(before), "block").where(f.col("done_us") < f.greatest("ahead_us", "earlier_us"))


def key_violations(events: DataFrame) -> DataFrame:
    """Return one row: how many events were done before one of the same customer that lay ahead in their partition.

    Only partitions with overtakers are looked at. Needs the column `customer_hash`.
    """
    suspects = overtakers(events).select("partition").distinct()
    ahead = Window.partitionBy("partition", "customer_hash").orderBy("offset")
    ahead = ahead.rowsBetween(Window.unboundedPreceding, -1)
    known = _placed(events).where("customer_hash is not null").join(f.broadcast(suspects), "partition", "left_semi")
    latest = known.select("done_us", f.max("done_us").over(ahead).alias("ahead_us"))
    return latest.agg(f.count_if(f.col("done_us") < f.col("ahead_us")).alias("key_violations"))


def offset_gaps(events: DataFrame) -> DataFrame:
    """Return one row: offsets between the first and the last of a partition that no event has."""
    ends = events.where("partition is not null and offset is not null").groupBy("partition")
    found = ends.agg((f.max("offset") - f.min("offset") + 1 - f.count("*")).alias("missing"))
    return found.agg(f.coalesce(f.sum(f.greatest("missing", f.lit(0))), f.lit(0)).alias("offset_gaps"))


def _placed(events: DataFrame) -> DataFrame:
    return events.where(f.col("done_us").isNotNull() & f.col("offset").isNotNull() & f.col("partition").isNotNull())
