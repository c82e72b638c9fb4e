"""Event rows → tables by second of the run: small ones, from which series, heat map, bound and owners are read."""

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from bench.latency_job.measures import PARTS_PER_MILLION
from bench.latency_job.terms import Terms, accounted

SHOWN: Final = ("p50", "p99")
NOWHERE: Final = -1
"""Partition of an event of which nobody knows where it lay."""


def by_second(events: DataFrame, terms: Terms) -> DataFrame:
    """Return second (of intent), arrivals, p50, p99, max (µs, nearest rank; null where nothing was done).

    The latencies of one second are put in order as one array: memory is bounded by the events of a second.
    """
    latency = f.col("done_us") - f.col("intended_us")
    grouped = events.groupBy(terms.second("intended_us").alias("second")).agg(
        f.count("*").alias("arrivals"), f.sort_array(f.collect_list(latency)).alias("sorted")
    )
    return grouped.select(
        "second",
        "arrivals",
        *[_at_rank(PARTS_PER_MILLION[name]).alias(name) for name in SHOWN],
        f.get("sorted", f.size("sorted") - 1).alias("max"),
    )


def arrived(events: DataFrame, terms: Terms) -> DataFrame:
    """Return partition, second (of intent), events, max_us (worst latency)."""
    latency = f.col("done_us") - f.col("intended_us")
    partition = f.coalesce("partition", f.lit(NOWHERE)).alias("partition")
    grouped = events.where(accounted()).groupBy(partition, terms.second("intended_us").alias("second"))
    return grouped.agg(
        f.count("*").alias("events"),
        f.max(latency).alias("max_us"),
    )


def served(events: DataFrame, terms: Terms) -> DataFrame:
    """Return partition, replica, epoch, second (of completion), and what was done there.

    events, late; first_done_us, last_done_us; first_received_us; late_from_us: earliest intended time of a late one.
    """
    late = f.when(terms.late(), f.col("intended_us"))
    return (
        events.where("done_us is not null")
        .groupBy(
            f.coalesce("partition", f.lit(NOWHERE)).alias("partition"),
            "replica",
            "epoch",
            terms.second("done_us").alias("second"),
        )
        .agg(
            f.count("*").alias("events"),
            f.count(late).alias("late"),
            f.min("done_us").alias("first_done_us"),
            f.max("done_us").alias("last_done_us"),
            f.min("received_us").alias("first_received_us"),
            f.min(late).alias("late_from_us"),
        )
    )


def owned(arrived: DataFrame, served: DataFrame) -> DataFrame:
    """Return `arrived` with owner: who served the partition last in that second, else in the seconds before it.

    Looked up in the small table: among ten million events the last of each second would have to be sorted for.
    """
    last = f.max(f.struct("last_done_us", "replica"))["replica"].alias("owner")
    owners = served.groupBy("partition", "second").agg(last)
    upto = Window.partitionBy("partition").orderBy("second").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    joined = arrived.join(owners, ["partition", "second"], "left")
    return joined.withColumn("owner", f.last("owner", ignorenulls=True).over(upto))


def done(served: DataFrame) -> DataFrame:
    """Return second, done: events done in each second. served: of the function of this name."""
    return served.groupBy("second").agg(f.sum("events").alias("done"))


def _at_rank(ppm: int) -> Column:
    """Return the nearest rank: element ⌈n·q⌉ of n, counted from 1."""
    return f.expr(f"get(sorted, cast(greatest((size(sorted) * {ppm}L + 999999) div 1000000, 1) - 1 as int))")
