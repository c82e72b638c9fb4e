"""Busy periods: whole seconds at whose beginnings a server, replica or partition, had events left to do.

What was done before such a period has kept nothing in it waiting. So each is a queue of its own, and only those in
which something was late, and there is something to ask, need be put in order.
"""

from collections.abc import Sequence
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from report.spark.terms import Terms

EARLIEST_S: Final = -60
"""Nothing is looked at before; a time may be absurd."""


def busy(cells: DataFrame, server: str, terms: Terms, asked: Sequence[str] = ("late",)) -> DataFrame:
    """Return `server`, came_s, busy_s: the busy periods, one row for each second in which events came.

    cells: of `seconds.cells`. server: "replica" or "partition". asked: columns of cells; only periods in which each is
    positive somewhere are returned. came_s: as `came`. busy_s: when the period began.
    """
    each = (
        cells.where(seen(terms))
        .groupBy(server, came("intended_second", "second").alias("came_s"))
        .agg(f.max("second").alias("until_s"), *[f.max(name).alias(name) for name in asked])
    )
    by_time = Window.partitionBy(server).orderBy("came_s")
    until = f.max("until_s").over(by_time.rowsBetween(Window.unboundedPreceding, -1))
    begins = f.when(f.coalesce(until < f.col("came_s"), f.lit(True)), f.col("came_s"))
    marked = each.withColumn("begins", begins)
    since = f.max("begins").over(by_time.rowsBetween(Window.unboundedPreceding, Window.currentRow))
    period = Window.partitionBy(server, "busy_s")
    counted = marked.withColumn("busy_s", since).withColumns({name: f.max(name).over(period) for name in asked})
    return counted.where(" and ".join(f"{name} > 0" for name in asked)).select(server, "came_s", "busy_s")


def seen(terms: Terms) -> Column:
    """Return whether a row's second (of completion) is looked at; false of never and of absurd times."""
    return f.coalesce(f.col("second").between(EARLIEST_S, terms.shown_s), f.lit(False))


def came(intended_s: Column | str, done_s: Column | str) -> Column:
    """Return the second in which an event came: intended then, or done already, where clocks differ."""
    return f.greatest(f.least(intended_s, done_s), f.lit(EARLIEST_S))


def with_busy(events: DataFrame, periods: DataFrame, server: str, besides: Column) -> DataFrame:
    """Return `events` with SERVER_busy_s: of the period (of `busy`) that an event lies in; null: of none.

    events: done ones, with came_s. What is `besides` and lies in no period is in one by itself and its like.
    """
    here = f.col(server).eqNullSafe(f.col("server")) & (f.col("came_s") == f.col("at_s"))
    named = periods.select(f.col(server).alias("server"), f.col("came_s").alias("at_s"), "busy_s")
    found = events.join(named, here, "left").drop("server", "at_s")
    begun = f.coalesce("busy_s", f.when(besides, EARLIEST_S - 1))
    return found.withColumn(f"{server}_busy_s", begun).drop("busy_s")
