"""Event rows → exact percentiles. Integer microseconds throughout, so results are equal on any master."""

from collections.abc import Mapping
from typing import Any, Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from report.result import STAGES, Breakdown, Breakdowns, Distribution, Lateness, Stage
from report.spark.terms import NOWHERE, latency

PARTS_PER_MILLION: Final = {
    "p50": 500_000, "p90": 900_000, "p95": 950_000, "p99": 990_000, "p999": 999_000, "p9999": 999_900, "max": 1_000_000,
}  # fmt: skip
"""Quantiles as integers: in binary fractions ⌈q·n⌉ may be one too high."""
BUCKETS_PER_DECADE: Final = 50
"""Resolution of the latency distribution: edges 4.7 % apart."""
SPANS: Final = {
    "sla": ("intended_us", "done_us"),
    "lateness": ("intended_us", "placed_us"),
    "sending": ("placed_us", "accepted_us"),
    "queueing": ("handed_us", "received_us"),
    "serving": ("received_us", "done_us"),
    "shipping": ("done_us", "shipped_us"),
    "notifying": ("sent_us", "notified_us"),
    "end-to-end": ("intended_us", "notified_us"),
}
"""Measure → the two steps between which it lies. `handed_us`: accepted, or placed in payment-only runs;
`sent_us`: shipped, or done where nothing is shipped."""
UNKNOWN: Final = "unknown"


def spans() -> dict[str, Column]:
    """Return measure → how long it took an event, µs; null where the event has not both ends."""
    ends = {"handed_us": f.coalesce("accepted_us", "placed_us"), "sent_us": f.coalesce("shipped_us", "done_us")}
    return {name: ends.get(end, f.col(end)) - ends.get(begin, f.col(begin)) for name, (begin, end) in SPANS.items()}


def nearest_ranks(values: DataFrame, key: str) -> DataFrame:
    """Return `key`, events and a column for each of `PARTS_PER_MILLION` (µs): nearest-rank percentiles.

    values: `key` (may be null), value_us; rows without a value are left out. The rank of q among n is ⌈q·n⌉, at least
    1: the smallest value with so many at or below it. Equal values are counted first, and only distinct ones sorted.
    """
    counted = values.where("value_us is not null").groupBy(key, "value_us").agg(f.count("*").alias("equal"))
    group = Window.partitionBy(key)
    up_to_here = group.orderBy("value_us").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    ranked = counted.select(
        key, "value_us", f.sum("equal").over(up_to_here).alias("upto"), f.sum("equal").over(group).alias("events")
    )
    reached = {
        name: f.min(f.when(f.col("upto") * 1_000_000 >= f.col("events") * ppm, f.col("value_us")))
        for name, ppm in PARTS_PER_MILLION.items()
    }
    return ranked.groupBy(key).agg(
        f.first("events").alias("events"), *[column.alias(name) for name, column in reached.items()]
    )


def measured(events: DataFrame) -> dict[str, dict[str, Any]]:
    """Return measure (of SPANS) → its row of `nearest_ranks`; without those that no event has."""
    each = events.select(*[span.alias(name) for name, span in spans().items()])
    rows = nearest_ranks(each.unpivot([], list(SPANS), "measure", "value_us"), "measure").collect()
    return {row["measure"]: row.asDict() for row in rows}


def stages(found: Mapping[str, Mapping[str, Any]]) -> tuple[Stage, ...]:
    """Return the stages that some event passed. found: of `measured`."""
    return tuple(
        Stage(
            stage=name,
            events=found[name]["events"],
            **{f"{rank}_s": found[name][rank] / 1e6 for rank in PARTS_PER_MILLION},
        )
        for name in STAGES
        if name in found
    )


def lateness(found: Mapping[str, Mapping[str, Any]]) -> Lateness:
    """Return how late the generator was. found: of `measured`."""
    return Lateness(**{f"{rank}_s": seconds(found, "lateness", rank) for rank in ("p50", "p99", "max")})


def seconds(found: Mapping[str, Mapping[str, Any]], measure: str, rank: str) -> float | None:
    """Return a percentile in seconds; None where no event has that measure."""
    return found[measure][rank] / 1e6 if measure in found else None


def distribution(events: DataFrame, total: int) -> Distribution:
    """Return the share of `total` events done within each of a row of latencies, 50 to a decade."""
    bucket = f.ceil(f.log10(f.greatest(latency(), f.lit(1)).cast("double")) * BUCKETS_PER_DECADE)
    rows = events.where("done_us is not null").groupBy(bucket.alias("bucket")).agg(f.count("*").alias("events"))
    share, latency_s, below = [], [], 0
    for row in sorted(rows.collect(), key=lambda row: row["bucket"]):
        below += row["events"]
        share.append(below / total)
        latency_s.append(10 ** (row["bucket"] / BUCKETS_PER_DECADE) / 1e6)
    return Distribution(share=tuple(share), latency_s=tuple(latency_s))


def breakdowns(events: DataFrame, cells: DataFrame) -> Breakdowns:
    """Return the SLA stage by partition, replica and plan epoch. cells: of `seconds.cells`, which count late events."""
    return Breakdowns(
        partitions=_by(events, cells, "partition"),
        replicas=_by(events, cells, "replica"),
        epochs=_by(events, cells, "epoch"),
    )


def _by(events: DataFrame, cells: DataFrame, key: str) -> tuple[Breakdown, ...]:
    name = f.coalesce(key, f.lit(NOWHERE)) if key == "partition" else f.col(key)
    ranks = nearest_ranks(events.select(name.alias(key), latency().alias("value_us")), key)
    late = cells.groupBy(f.col(key).alias("of")).agg(f.sum("late").alias("late"))
    rows = ranks.join(late, f.col(key).eqNullSafe(f.col("of"))).collect()
    return tuple(
        Breakdown(
            name=UNKNOWN if row[key] in {None, NOWHERE} else str(row[key]),
            events=row["events"],
            late=row["late"],
            p50_s=row["p50"] / 1e6,
            p99_s=row["p99"] / 1e6,
            p999_s=row["p999"] / 1e6,
            max_s=row["max"] / 1e6,
        )
        for row in sorted(rows, key=lambda row: _order(row[key]))
    )


def _order(name: Any) -> tuple[bool, Any]:
    """Return a sort key: numbers by size, names by the number at their end, the unknown last."""
    if isinstance(name, str):
        stem = name.rstrip("0123456789")
        return (False, (stem, int(name[len(stem) :] or -1)))
    unknown = name is None or name == NOWHERE
    return (unknown, ("", -1) if unknown else name)
