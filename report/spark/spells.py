"""Late events that have one cause and follow each other on one partition: spells. Only these leave Spark."""

from collections.abc import Sequence
from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from report.spark.terms import SECOND_US, Terms

LISTED: Final = 1_000
APART_US: Final = 2 * SECOND_US
"""Two late events that were intended further apart belong to two spells."""
FIGURES: Final = (
    "latency_us", "intended_us", "placed_us", "accepted_us", "handed_us", "received_us", "start_us", "service_us",
    "left_us", "came_us", "since_us", "idle_us", "slowed_us", "stop_us", "load", "over_from", "old",
)  # fmt: skip
"""Columns of a spell's worst event that its sentence is made from."""


def spells(late: DataFrame) -> DataFrame:
    """Return cause, partition, replica, epoch, from_us, until_us, events, worst (its worst event's `FIGURES`)."""
    line = ("partition", "cause")
    order = Window.partitionBy(*line).orderBy("intended_us", "offset", "done_us")
    who = f.struct("replica", "epoch")
    apart = f.col("intended_us") - f.lag("intended_us").over(order) > APART_US
    begins = f.coalesce(apart | (f.lag(who).over(order) != who), f.lit(True))
    numbered = late.withColumn("begins", begins.cast("int")).withColumn("spell", f.sum("begins").over(order))
    worst = f.max(f.struct(*FIGURES))
    return numbered.groupBy(*line, "spell").agg(
        f.first("replica").alias("replica"),
        f.first("epoch").alias("epoch"),
        f.min("intended_us").alias("from_us"),
        f.max("intended_us").alias("until_us"),
        f.count("*").alias("events"),
        worst.alias("worst"),
    )


def largest(found: DataFrame, listed: int = LISTED) -> DataFrame:
    """Return the spells with most events."""
    return found.orderBy(f.desc("events"), "from_us", "partition", "cause").limit(listed)


def by_cause(late: DataFrame, terms: Terms) -> DataFrame:
    """Return cause, second (of intent), events, worst_us."""
    return late.groupBy("cause", terms.second("intended_us").alias("second")).agg(
        f.count("*").alias("events"), f.max("latency_us").alias("worst_us")
    )


def with_figures(rows: DataFrame, missing: Sequence[str] = FIGURES) -> DataFrame:
    """Return `rows` with null in those columns of `missing` that it lacks."""
    absent = [name for name in missing if name not in rows.columns]
    return rows.select("*", *[f.lit(None).cast("string" if name == "old" else "long").alias(name) for name in absent])
