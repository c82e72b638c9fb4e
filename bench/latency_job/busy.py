"""Busy periods: whole seconds at whose beginnings a server, replica or partition, had events left to do.

What was done before such a period has kept nothing in it waiting. So each is a queue of its own, and only those in
which something was late need be put in order.
"""

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from bench.latency_job.terms import Terms

EARLIEST_S: Final = -60
"""Nothing is looked at before; a time may be absurd."""


def busy(cells: DataFrame, server: str, terms: Terms) -> DataFrame:
    """Return `server`, came_s, busy_s: the busy periods with late events, one row for each second in which events came.

    cells: of `seconds.cells`. server: "replica" or "partition". came_s: as `came`. busy_s: when the period began.
    """
    known = cells.where(f.col("second").between(EARLIEST_S, terms.shown_s))
    each = known.groupBy(server, came("intended_second", "second").alias("came_s")).agg(
        f.max("second").alias("until_s"), f.sum("late").alias("late")
    )
    by_time = Window.partitionBy(server).orderBy("came_s")
    until = f.max("until_s").over(by_time.rowsBetween(Window.unboundedPreceding, -1))
    begins = f.when(f.coalesce(until < f.col("came_s"), f.lit(True)), f.col("came_s"))
    marked = each.withColumn("begins", begins)
    since = f.max("begins").over(by_time.rowsBetween(Window.unboundedPreceding, Window.currentRow))
    some_late = f.max("late").over(Window.partitionBy(server, "busy_s")) > 0
    periods = marked.withColumn("busy_s", since).withColumn("some_late", some_late)
    return periods.where("some_late").select(server, "came_s", "busy_s")


def came(intended_s: Column | str, done_s: Column | str) -> Column:
    """Return the second in which an event came: intended then, or done already, where clocks differ."""
    return f.greatest(f.least(intended_s, done_s), f.lit(EARLIEST_S))


def of_busy(events: DataFrame, periods: DataFrame, server: str, terms: Terms) -> DataFrame:
    """Return those of `events` that lie in `periods` (of `busy`), and every late one, with busy_s.

    events: done ones, with came_s. A late event that lies in none (its times are absurd) is in a period by itself and
    its like.
    """
    here = f.col(server).eqNullSafe(f.col("server")) & (f.col("came_s") == f.col("at_s"))
    named = periods.select(f.col(server).alias("server"), f.col("came_s").alias("at_s"), "busy_s")
    found = events.join(named, here, "left").drop("server", "at_s")
    kept = found.where(f.col("busy_s").isNotNull() | terms.late())
    return kept.withColumn("busy_s", f.coalesce("busy_s", f.lit(EARLIEST_S - 1)))
