"""Event rows → tables by second of the run: small ones, from which series, heat map, packing and owners are read."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from contracts.journal import JournalEntry, ReplicaChanged, TickRecord
from report.result import HeatMap, Series
from report.spark import group_history as history
from report.spark.percentiles import PARTS_PER_MILLION
from report.spark.terms import NOWHERE, SECOND_US, Terms, accounted, handed, latency

SHOWN: Final = ("p50", "p99")
DRAIN_SHOWN_S: Final = 600
"""Seconds after the workload that the series may cover: one record with an absurd time must not make a million."""
HEAT_CELLS: Final = 600
"""Most cells of a heat map in time: more would be narrower than a pixel."""


@dataclass(frozen=True, slots=True)
class Shares:
    """Events of the whole run."""

    rows: int
    events: int
    """Not refused."""
    in_sla: int
    lost: int
    refused: int
    last_us: int | None
    """Latest intended or done time."""
    done: Mapping[int, int]
    """Second → events done in it."""


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


def shares(cells: DataFrame) -> Shares:
    """Count the events. cells: of the function of this name."""
    rows = (
        cells.groupBy("second")
        .agg(*[f.sum(name).alias(name) for name in ("events", "late", "refused")], f.max("last_us").alias("last_us"))
        .collect()
    )
    done = [row for row in rows if row["second"] is not None]
    return Shares(
        rows=sum(row["events"] for row in rows),
        events=sum(row["events"] - row["refused"] for row in rows),
        in_sla=sum(row["events"] - row["late"] for row in done),
        lost=sum(row["events"] - row["refused"] for row in rows if row["second"] is None),
        refused=sum(row["refused"] for row in rows),
        last_us=max((row["last_us"] for row in rows), default=None),
        done={row["second"]: row["events"] for row in done},
    )


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
    """Return partition, second (of intent), events, max_us (worst latency) and owner.

    The owner served the partition last in that second, else in the seconds before it. It is looked up in the small
    table: among ten million events the last of each second would have to be sorted for.
    """
    last = f.max(f.struct("last_done_us", "replica"))["replica"].alias("owner")
    owners = cells.where("last_done_us is not null").groupBy("partition", "second").agg(last)
    upto = Window.partitionBy("partition").orderBy("second").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    grouped = cells.groupBy("partition", f.col("intended_second").alias("second"))
    counted = grouped.agg(f.sum(f.col("events") - f.col("refused")).alias("events"), f.max("max_us").alias("max_us"))
    joined = counted.where("events > 0").join(owners, ["partition", "second"], "left")
    return joined.withColumn("owner", f.last("owner", ignorenulls=True).over(upto))


def by_second(events: DataFrame, terms: Terms) -> DataFrame:
    """Return second (of intent), arrivals, p50, p99, max (µs, nearest rank; null where nothing was done).

    The latencies of one second are put in order as one array: memory is bounded by the events of a second.
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


def shown_s(duration_s: float, started_us: int, last_us: int | None) -> int:
    """Return how many seconds series cover: the workload, and the drain after it.

    last_us: the latest of all intended and done times.
    """
    workload = max(1, math.ceil(duration_s))
    last = ((last_us or started_us) - started_us) // SECOND_US
    return min(max(workload, last + 1), workload + DRAIN_SHOWN_S)


def series(
    events: DataFrame,
    done: Mapping[int, int],
    journal: Sequence[JournalEntry],
    terms: Terms,
    packing_replicas: NDArray[np.int64] | None = None,
) -> Series:
    """Return one entry for each second shown. done: second → events done.

    packing_replicas: of the packing, by second of the workload; None: not known.
    """
    rows = {row["second"]: row.asDict() for row in by_second(events, terms).collect()}
    shown = range(terms.shown_s)
    changes = history.only(journal, ReplicaChanged)

    def latencies(name: str) -> tuple[float | None, ...]:
        values = (rows.get(second, {}).get(name) for second in shown)
        return tuple(None if value is None else value / 1e6 for value in values)

    def replicas(spans: Sequence[history.Span]) -> tuple[int | None, ...]:
        if not changes:
            return (None,) * terms.shown_s
        return history.count_each_second(spans, terms.started_us, terms.shown_s)

    return Series(
        arrivals=tuple(rows.get(second, {}).get("arrivals", 0) for second in shown),
        done=tuple(done.get(second, 0) for second in shown),
        p50_s=latencies("p50"),
        p99_s=latencies("p99"),
        max_s=latencies("max"),
        requested_replicas=replicas(history.paid(changes)),
        ready_replicas=replicas(history.serving(changes)),
        lag=history.lag_each_second(history.only(journal, TickRecord), terms.started_us, terms.shown_s),
        packing_replicas=() if packing_replicas is None else _filled(packing_replicas.tolist(), terms.shown_s),
    )


def heat_map(arrived: DataFrame, terms: Terms) -> HeatMap:
    """Return the worst latency of each partition in each cell of time. arrived: of `seconds.owned`."""
    cell_s = max(1, -(-terms.shown_s // HEAT_CELLS))
    cells = -(-terms.shown_s // cell_s)
    shown = arrived.where((f.col("second") >= 0) & (f.col("second") < terms.shown_s))
    last = f.max(f.when(f.col("owner").isNotNull(), f.struct("second", "owner")))
    rows = (
        shown.groupBy("partition", f.expr(f"second div {cell_s}").alias("cell"))
        .agg(f.max("max_us").alias("max_us"), last["owner"].alias("owner"))
        .where(f.col("partition") != NOWHERE)
        .collect()
    )
    partitions = tuple(sorted({row["partition"] for row in rows}))
    worst: dict[int, list[float | None]] = {number: [None] * cells for number in partitions}
    owners: dict[int, list[str | None]] = {number: [None] * cells for number in partitions}
    for row in rows:
        worst[row["partition"]][row["cell"]] = None if row["max_us"] is None else row["max_us"] / 1e6
        owners[row["partition"]][row["cell"]] = row["owner"]
    return HeatMap(
        cell_s=float(cell_s),
        partitions=partitions,
        max_s=tuple(tuple(worst[number]) for number in partitions),
        owners=tuple(tuple(owners[number]) for number in partitions),
    )


def _filled(values: Sequence[int], length: int) -> tuple[int | None, ...]:
    """Return `values` and nothing after them: the drain needs no replicas of the packing."""
    return (*values[:length], *[None] * (length - len(values)))


def _at_rank(ppm: int) -> Column:
    """Return the nearest rank: element ⌈n·q⌉ of n, counted from 1."""
    return f.expr(f"get(sorted, cast(greatest((size(sorted) * {ppm}L + 999999) div 1000000, 1) - 1 as int))")
