"""Who served which partition, when: stays, and the pause before each: gaps and islands over the table `served`."""

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f


def stays(served: DataFrame, deaths: Mapping[str, Sequence[int]]) -> DataFrame:
    """Return the rows of `served` with the stay they belong to.

    A stay is one replica (one life of it) serving a partition without another in between. Added are old (replica
    before), left_us (its last event done), came_us (first event received in this stay); null for the first stay of a
    partition, and where two replicas served it at the same time: then nothing was handed over.
    deaths: replica → when it died, µs. Exact, unless a partition leaves and returns in one second under one epoch.
    """
    lives = served.withColumn("life", _life(deaths))
    order = Window.partitionBy("partition").orderBy("first_done_us", "last_done_us", "replica", "epoch")
    who = f.struct("replica", "life")
    changed = f.coalesce(f.lag(who).over(order) != who, f.lit(True))
    numbered = lives.withColumn("changed", changed).withColumn("stay", f.sum(f.col("changed").cast("int")).over(order))
    ends = numbered.groupBy("partition", "stay").agg(
        f.first("replica").alias("who"),
        f.min("first_done_us").alias("begin_us"),
        f.max("last_done_us").alias("end_us"),
        f.min(f.coalesce("first_received_us", "first_done_us")).alias("first_us"),
    )
    by_time = Window.partitionBy("partition").orderBy("stay")
    before = ends.select(
        "partition", "stay", "begin_us", "first_us", f.lag("who").over(by_time).alias("old"),
        f.max("end_us").over(by_time.rowsBetween(Window.unboundedPreceding, -1)).alias("left_us"),
    )  # fmt: skip
    handed_over = f.col("left_us") <= f.col("begin_us")
    known = before.select(
        "partition",
        "stay",
        f.when(handed_over, f.col("old")).alias("old"),
        f.when(handed_over, f.col("left_us")).alias("left_us"),
        f.when(handed_over, f.greatest("first_us", "left_us")).alias("came_us"),
    )
    return numbered.drop("changed").join(known, ["partition", "stay"])


def takeovers(stays: DataFrame) -> DataFrame:
    """Return partition, old, new, left_us, came_us of the handovers into stays in which events were late."""
    late = stays.where("left_us is not null").groupBy("partition", "stay")
    return late.agg(
        *[f.first(name).alias(name) for name in ("old", "left_us", "came_us")],
        f.first("replica").alias("new"),
        f.sum("late").alias("late"),
    ).where("late > 0")


def _life(deaths: Mapping[str, Sequence[int]]) -> Column:
    """Return how often the row's replica had died before: a replica that comes back by its old name is another one."""
    life = f.lit(0)
    for replica, times in deaths.items():
        died = sum(((f.col("first_done_us") > at_us).cast("int") for at_us in times), f.lit(0))
        life = f.when(f.col("replica") == replica, died).otherwise(life)
    return life
