"""Whether every order had its effects once, and what must not be in a run: lost, repeated or overtaken events."""

from collections.abc import Mapping
from typing import Any, Final

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as f

from report.result import Effects, Integrity, TopicRecords
from report.spark.events import COLUMN_OF, CUSTOMER, TIMES
from report.spark.files import COUNTED, PLACED, Events
from report.spark.percentiles import SPANS, spans
from report.wording import several

SKEWED: Final = "skewed_"


def totals(events: DataFrame, *, pipeline: bool, now_us: int) -> dict[str, int]:
    """Return counts over all events: dead letters, effects, records of each topic, times that cannot be.

    now_us: when the report is made; later times cannot be.
    """
    counts = ~(f.col("done_us").isNull() & (f.col("dead_letters") > 0))
    doubled = _doubled(pipeline)
    found = events.agg(
        f.coalesce(f.sum("dead_letters"), f.lit(0)).alias("dead_letters"),
        f.count_if(counts & ~doubled & _complete(pipeline)).alias("exactly_once"),
        f.count_if(counts & doubled).alias("doubled"),
        *[column for prefix in COLUMN_OF.values() for column in _of_topic(prefix)],
        f.count_if(f.greatest(*TIMES) > now_us).alias("future"),
        *[f.count_if(span < 0).alias(SKEWED + name) for name, span in spans().items()],
    )
    return dict(found.collect()[0].asDict())


def effects(counts: Mapping[str, int]) -> Effects:
    """Return what became of the orders. counts: of `totals`, and events."""
    orders, once, doubled = counts["events"], counts["exactly_once"], counts["doubled"]
    return Effects(orders=orders, exactly_once=once, missing=orders - once - doubled, doubled=doubled)


def topics(counts: Mapping[str, int]) -> tuple[TopicRecords, ...]:
    """Return what each topic held that held anything. counts: of `totals`."""
    return tuple(
        TopicRecords(
            topic=topic.value,
            records=counts[f"{prefix}_records"],
            duplicates=counts[f"{prefix}_duplicates"],
            differing=counts[f"{prefix}_differing"],
        )
        for topic, prefix in COLUMN_OF.items()
        if counts[f"{prefix}_records"]
    )


def integrity(events: Events, counts: Mapping[str, int], *, lost: int | None, key_order: bool = False) -> Integrity:
    """Return what is wrong. counts: of `totals`. key_order: whether the events of a customer had to stay in order."""
    rows, placed = events.rows, events.tell(*PLACED)
    repeated = sum(counts[f"{prefix}_duplicates"] for prefix in COLUMN_OF.values())
    found: dict[str, Any] = {
        "lost": lost,
        "duplicates": repeated if events.tell(COUNTED) else None,
        "order_violations_partition": _overtaking(rows) if placed else None,
        "order_violations_key": _overtaking_customers(rows) if placed and CUSTOMER in rows.columns else None,
        "clock_skew": {name: counts[SKEWED + name] for name in SPANS if counts[SKEWED + name]},
        "offset_gaps": _offset_gaps(rows) if placed else None,
        "future": counts["future"],
    }
    said = found if key_order else found | {"order_violations_key": None}
    return Integrity(**found, suspect=_suspect(said))


def _doubled(pipeline: bool) -> Column:
    if not pipeline:
        return f.col("settled_differ")
    twice = (f.col("shipped_records") > 1) | (f.col("notified_records") > 1)
    shipped_though_declined = ~f.coalesce("accepted", f.lit(True)) & (f.col("shipped_records") > 0)
    return f.col("settled_differ") | twice | shipped_though_declined


def _complete(pipeline: bool) -> Column:
    settled = f.col("settled_records") > 0
    if not pipeline:
        return settled
    shipped = (f.col("shipped_records") > 0) | ~f.coalesce("accepted", f.lit(True))
    return settled & shipped & (f.col("notified_records") > 0)


def _of_topic(prefix: str) -> list[Column]:
    records = f.col(f"{prefix}_records")
    return [
        f.coalesce(f.sum(records), f.lit(0)).alias(f"{prefix}_records"),
        f.coalesce(f.sum(f.greatest(records - 1, f.lit(0))), f.lit(0)).alias(f"{prefix}_duplicates"),
        f.count_if(f"{prefix}_differ").alias(f"{prefix}_differing"),
    ]


def _overtaking(events: DataFrame) -> int:
    """Return how many events were done before one that lay ahead of them in their partition."""
    done = _done(events)
    latest = done.select("done_us", f.max("done_us").over(_ahead("partition", until=-1)).alias("ahead_us"))
    return int(latest.agg(f.count_if(f.col("done_us") < f.col("ahead_us"))).collect()[0][0])


def _overtaking_customers(events: DataFrame) -> int:
    """Return how many events were done before one of the same customer that came earlier, to any partition.

    An event came when it was asked for, but not before those ahead of it in its partition: there offsets tell, and
    sources need not have equal clocks. Of two that came at once to different partitions neither is the earlier.
    """
    done = _done(events).where(f"{CUSTOMER} is not null")
    asked_us = f.coalesce("accepted_us", "placed_us", "intended_us")
    line = (CUSTOMER, "partition")
    came = done.select(
        CUSTOMER,
        "done_us",
        f.max(asked_us).over(_ahead(*line, until=0)).alias("came_us"),
        f.max("done_us").over(_ahead(*line, until=-1)).alias("ahead_us"),
    )
    before = Window.partitionBy(CUSTOMER).orderBy("came_us").rangeBetween(Window.unboundedPreceding, -1)
    latest = came.select("done_us", f.greatest("ahead_us", f.max("done_us").over(before)).alias("earlier_us"))
    return int(latest.agg(f.count_if(f.col("done_us") < f.col("earlier_us"))).collect()[0][0])


def _done(events: DataFrame) -> DataFrame:
    return events.where("done_us is not null and offset is not null and partition is not null")


def _ahead(*line: str, until: int) -> WindowSpec:
    return Window.partitionBy(*line).orderBy("offset").rowsBetween(Window.unboundedPreceding, until)


def _offset_gaps(events: DataFrame) -> int:
    """Return the offsets between the first and the last of a partition that no event has."""
    ends = events.where("partition is not null and offset is not null").groupBy("partition")
    found = ends.agg((f.max("offset") - f.min("offset") + 1 - f.count("*")).alias("missing"))
    return int(found.agg(f.coalesce(f.sum(f.greatest("missing", f.lit(0))), f.lit(0))).collect()[0][0])


def _suspect(found: Mapping[str, Any]) -> tuple[str, ...]:
    """Return each thing that is not 0, in words."""
    words = {
        "lost": "{} lost",
        "duplicates": "{} repeated",
        "order_violations_partition": "{} done before an event that lay ahead in the partition",
        "order_violations_key": "{} done before an earlier one of the same customer",
        "future": "{} with a time after this report was made",
    }
    said = [text.format(several(found[name], "event")) for name, text in words.items() if found[name]]
    said += [
        f"{several(count, 'event')} for which {stage} took less than no time"
        for stage, count in found["clock_skew"].items()
    ]
    if found["offset_gaps"]:
        said.append(f"{several(found['offset_gaps'], 'offset')} that no event has")
    return tuple(said)
