"""Event rows → tables by second of the run: small ones, from which series, heat map, bound and owners are read."""

from collections.abc import Sequence
from typing import Any, Final

from pyspark.sql import Column, DataFrame, Row, Window
from pyspark.sql import functions as f

from report.spark.measures import PARTS_PER_MILLION
from report.spark.terms import Terms, accounted, latency
from report.spark.waiting import handed

SHOWN: Final = ("p50", "p99")
NOWHERE: Final = -1
"""Partition of an event of which nobody knows where it lay."""
FEW: Final = 1_000_000
"""Rows of a table that one task works through, and that every task may get as a whole (some 100 MB)."""


def by_second(events: DataFrame, terms: Terms) -> DataFrame:
    """Return second (of intent), arrivals, p50, p99, max (µs, nearest rank; null where nothing was done).

    The latencies of one second are put in order as one array: memory is bounded by the events of a second. (Narrowing
    costs more here: a second has hardly more events in a bucket than one.)
    """
    grouped = events.groupBy(terms.second("intended_us").alias("second")).agg(
        f.count("*").alias("arrivals"), f.sort_array(f.collect_list(latency())).alias("sorted")
    )
    return grouped.select(
        "second",
        "arrivals",
        *[_at_rank(PARTS_PER_MILLION[name]).alias(name) for name in SHOWN],
        f.get("sorted", f.size("sorted") - 1).alias("max"),
    )


def cells(events: DataFrame, terms: Terms) -> DataFrame:
    """Return what the tables by second are made from, in one pass: some cells for each partition and second.

    partition, replica, epoch, second (of completion; null: never done), intended_second; events; refused, late;
    first_done_us, last_done_us; first_handed_us, first_received_us; max_us: worst latency; last_us: latest intended or
    done time.
    """
    done = f.col("done_us").isNotNull()
    grouped = events.groupBy(
        f.coalesce("partition", f.lit(NOWHERE)).alias("partition"),
        "replica",
        "epoch",
        terms.second("done_us").alias("second"),
        terms.second("intended_us").alias("intended_second"),
    )
    return grouped.agg(
        f.count("*").alias("events"),
        f.count_if(~accounted()).alias("refused"),
        f.count_if(done & terms.late()).alias("late"),
        f.min("done_us").alias("first_done_us"),
        f.max("done_us").alias("last_done_us"),
        f.min(handed()).alias("first_handed_us"),
        f.min("received_us").alias("first_received_us"),
        f.max(latency()).alias("max_us"),
        f.max(f.greatest("intended_us", "done_us")).alias("last_us"),
    )


def together(cells: DataFrame, size: int) -> DataFrame:
    """Return `cells` as one part where they are few: what is made from them then goes through no shuffle.

    size: how many there are. Ten small stages of a dozen tasks cost more than all that is to be done in them.
    """
    return cells.coalesce(1) if size <= FEW else cells


def arrived(cells: DataFrame) -> DataFrame:
    """Return partition, second (of intent), events, max_us (worst latency). cells: of the function of this name."""
    grouped = cells.groupBy("partition", f.col("intended_second").alias("second"))
    counted = grouped.agg(f.sum(f.col("events") - f.col("refused")).alias("events"), f.max("max_us").alias("max_us"))
    return counted.where("events > 0")


def served(cells: DataFrame) -> DataFrame:
    """Return partition, replica, epoch, second (of completion), and what was done there.

    events, late; first_done_us, last_done_us; first_received_us. cells: of the function of this name.
    """
    return (
        cells.where("last_done_us is not null")
        .groupBy("partition", "replica", "epoch", "second")
        .agg(
            f.sum("events").alias("events"),
            f.sum("late").alias("late"),
            f.min("first_done_us").alias("first_done_us"),
            f.max("last_done_us").alias("last_done_us"),
            f.min("first_received_us").alias("first_received_us"),
        )
    )


def owned(cells: DataFrame) -> DataFrame:
    """Return `arrived` with owner: who served the partition last in that second, else in the seconds before it.

    Looked up in the small table: among ten million events the last of each second would have to be sorted for.
    """
    last = f.max(f.struct("last_done_us", "replica"))["replica"].alias("owner")
    owners = cells.where("last_done_us is not null").groupBy("partition", "second").agg(last)
    upto = Window.partitionBy("partition").orderBy("second").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    joined = arrived(cells).join(owners, ["partition", "second"], "left")
    return joined.withColumn("owner", f.last("owner", ignorenulls=True).over(upto))


def completed(cells: DataFrame) -> DataFrame:
    """Return second (of completion; null: never done), events, late, refused, last_us, cells (their number)."""
    return cells.groupBy("second").agg(
        *[f.sum(name).alias(name) for name in ("events", "late", "refused")],
        f.max("last_us").alias("last_us"),
        f.count("*").alias("cells"),
    )


def shares(rows: Sequence[Row]) -> dict[str, Any]:
    """Return rows, events (not refused), in_sla, lost, refused, last_us (latest intended or done time), and cells.

    rows: of `completed`.
    """
    return {
        "rows": sum(row["events"] for row in rows),
        "events": sum(row["events"] - row["refused"] for row in rows),
        "in_sla": sum(row["events"] - row["late"] for row in rows if row["second"] is not None),
        "lost": sum(row["events"] - row["refused"] for row in rows if row["second"] is None),
        "refused": sum(row["refused"] for row in rows),
        "last_us": max((row["last_us"] for row in rows), default=None),
        "cells": sum(row["cells"] for row in rows),
    }


def done(rows: Sequence[Row]) -> dict[int, int]:
    """Return second (of completion) → events done in it. rows: of `completed`."""
    return {row["second"]: row["events"] for row in rows if row["second"] is not None}


def _at_rank(ppm: int) -> Column:
    """Return the nearest rank: element ⌈n·q⌉ of n, counted from 1."""
    return f.expr(f"get(sorted, cast(greatest((size(sorted) * {ppm}L + 999999) div 1000000, 1) - 1 as int))")
