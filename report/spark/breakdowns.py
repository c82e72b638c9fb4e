"""The SLA stage by partition, replica and plan epoch; and the worst latencies by partition and time."""

from typing import Any, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from report.result import Breakdown, Breakdowns, HeatMap
from report.spark.narrowing import ranks_within
from report.spark.seconds import NOWHERE
from report.spark.terms import Terms, latency

CELLS: Final = 600
"""Most cells of a heat map in time: more would be narrower than a pixel."""
UNKNOWN: Final = "unknown"
SHOWN: Final = ("p50", "p99", "p999")


def breakdowns(events: DataFrame, cells: DataFrame) -> Breakdowns:
    """Return the three lists. cells: of `seconds.cells`, whose counts say how many were late."""
    return Breakdowns(
        partitions=_by(events, cells, "partition"),
        replicas=_by(events, cells, "replica"),
        epochs=_by(events, cells, "epoch"),
    )


def heat_map(arrived: DataFrame, terms: Terms) -> HeatMap:
    """Return the worst latency of each partition in each cell of time. arrived: of `seconds.owned`."""
    cell_s = max(1, -(-terms.shown_s // CELLS))
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


def _by(events: DataFrame, cells: DataFrame, key: str) -> tuple[Breakdown, ...]:
    name = f.coalesce(key, f.lit(NOWHERE)) if key == "partition" else f.col(key)
    ranks = ranks_within(events.select(name.alias(key), latency().alias("value_us")), key, SHOWN)
    late = cells.groupBy(f.col(key).alias("of")).agg(f.sum("late").alias("late"))
    rows = ranks.join(late, f.col(key).eqNullSafe(f.col("of"))).collect()
    return tuple(_breakdown(row.asDict(), key) for row in sorted(rows, key=lambda row: _order(row[key])))


def _order(name: Any) -> tuple[bool, Any]:
    """Return a sort key: numbers by size, names by the number at their end, the unknown last."""
    if isinstance(name, str):
        stem = name.rstrip("0123456789")
        return (False, (stem, int(name[len(stem) :] or -1)))
    unknown = name is None or name == NOWHERE
    return (unknown, ("", -1) if unknown else name)


def _breakdown(row: dict[str, Any], key: str) -> Breakdown:
    name = UNKNOWN if row[key] in {None, NOWHERE} else str(row[key])
    return Breakdown(
        name=name,
        events=row["events"],
        late=row["late"],
        p50_s=row["p50"] / 1e6,
        p99_s=row["p99"] / 1e6,
        p999_s=row["p999"] / 1e6,
        max_s=row["max"] / 1e6,
    )
