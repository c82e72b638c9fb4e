"""Event rows of a run → counts by cell of time; of two runs → their events side by side. Integers throughout."""

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

PLACE: Final = ("partition", "offset", "intended_us")
"""What the same event has in common in two runs: where it lay, and when, since the start, it was intended."""


def cell_totals(events: DataFrame, started_us: int, cell_us: int, last: int, target_us: int) -> DataFrame:
    """Return cell, events, in_sla: events intended in each cell, and those of them done within the target.

    Refused events are none. last: number of the last cell; what was intended later counts there.
    """
    refused = f.col("done_us").isNull() & (f.col("dead_letters") > 0)
    in_sla = f.col("done_us") - f.col("intended_us") <= target_us
    return (
        events.where(~refused)
        .groupBy(_cell(started_us, cell_us, last).alias("cell"))
        .agg(f.count("*").alias("events"), f.count_if(in_sla).alias("in_sla"))
    )


def cell_latencies(
    events: DataFrame, started_us: int, cell_us: int, last: int, *, floor_us: int, edges_per_decade: int
) -> DataFrame:
    """Return cell, edge, events: done events by ⌈edges_per_decade · log10(µs)⌉ of their latency, or of floor_us."""
    latency_us = f.greatest(f.col("done_us") - f.col("intended_us"), f.lit(max(1, floor_us)))
    edge = f.ceil(f.log10(latency_us.cast("double")) * edges_per_decade)
    done = events.where(f.col("done_us").isNotNull())
    cells = _cell(started_us, cell_us, last).alias("cell")
    return done.groupBy(cells, edge.alias("edge")).agg(f.count("*").alias("events"))


def same_events(here: DataFrame, there: DataFrame, here_us: int, there_us: int, target_us: int) -> DataFrame:
    """Return one row: paired, late_in_both, late_only_here, late_only_there, both_done, difference_us (a sum).

    here_us, there_us: the runs' second 0. Never done is late.
    """
    pairs = _placed(here, here_us, "here_us").join(_placed(there, there_us, "there_us"), list(PLACE))
    late_here, late_there = (f.coalesce(f.col(name) > target_us, f.lit(True)) for name in ("here_us", "there_us"))
    difference = f.col("here_us") - f.col("there_us")
    return pairs.agg(
        f.count("*").alias("paired"),
        f.count_if(late_here & late_there).alias("late_in_both"),
        f.count_if(late_here & ~late_there).alias("late_only_here"),
        f.count_if(~late_here & late_there).alias("late_only_there"),
        f.count(difference).alias("both_done"),
        f.coalesce(f.sum(difference), f.lit(0)).alias("difference_us"),
    )


def _placed(events: DataFrame, started_us: int, name: str) -> DataFrame:
    """Return the place of each event, and its latency under `name`."""
    return events.where(f.col("partition").isNotNull() & f.col("offset").isNotNull()).select(
        f.col("partition").cast("int").alias("partition"),
        f.col("offset").cast("long").alias("offset"),
        (f.col("intended_us") - started_us).alias("intended_us"),
        (f.col("done_us") - f.col("intended_us")).alias(name),
    )


def _cell(started_us: int, cell_us: int, last: int) -> Column:
    cell = f.floor((f.col("intended_us") - started_us) / cell_us)
    return f.greatest(f.lit(0), f.least(f.lit(last), cell))
