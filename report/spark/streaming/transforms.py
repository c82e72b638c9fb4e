"""Typed records → one row per window. The same function counts a batch and a stream; only a stream has a watermark."""

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from contracts.events import SCHEMA_VERSION
from contracts.topics import Topic
from report.spark.streaming.question import Question

COUNTED: Final = ("event_id", "intended_us", "done_us")
TOLD: Final = (*COUNTED, "topic", "unknown_version", "unreadable")
NOBODY: Final = "\0"
"""event_id of a row that is no event and only moves time on. Not null: state is kept by a key that must not become
nullable when a source has nothing to say."""
BESIDE: Final = f" beside {SCHEMA_VERSION}; this release reads {SCHEMA_VERSION} only"
AHEAD_US: Final = 60_000_000
"""So far may an intended time lie ahead of this machine's clock; beyond, it would close all windows up to itself."""


def sla_windows(records: DataFrame, question: Question) -> DataFrame:
    """Return start_us, events, done, in_sla, slowest_us: one row for each window that holds an event.

    records: event_id, intended_us, done_us, as `typed_records` has them; event_id may be `NOBODY`.
    An event counts once, in the window of its intended time, with its first completion (smallest done_us), as in
    `event_rows`. From a stream each window comes once, after its watermark: state is one row per event until then.
    """
    timed = records.withColumn("at", f.timestamp_micros("intended_us"))
    waiting = timed.withWatermark("at", f"{round(question.delay_s * 1e6)} microseconds")
    events = waiting.groupBy(f.window("at", f"{question.window_s} seconds"), "event_id").agg(
        f.min("intended_us").alias("intended_us"), f.min("done_us").alias("done_us")
    )
    latency_us = f.col("done_us") - f.col("intended_us")
    counted = events.groupBy("window").agg(
        f.count_if(f.col("event_id") != NOBODY).alias("events"),  # a filter would be pushed below the watermark
        f.count(latency_us).alias("done"),
        f.count_if(latency_us <= round(question.latency_target_s * 1e6)).alias("in_sla"),
        f.max(latency_us).alias("slowest_us"),
    )
    return counted.where(f.col("events") > 0).select(
        f.unix_micros("window.start").alias("start_us"), "events", "done", "in_sla", "slowest_us"
    )


def believable(records: DataFrame) -> DataFrame:
    """Return the records that are not intended in the future; the metric `clock.ahead` counts the others.

    The time compared with is the micro-batch's own, which a repeated batch repeats.
    """
    ahead = f.col("intended_us") > f.unix_micros(f.current_timestamp()) + AHEAD_US
    return records.observe("clock", f.count_if(ahead).alias("ahead")).where(~ahead)


def of_our_version(records: DataFrame) -> DataFrame:
    """Return the columns `COUNTED` of `TOLD`; the metric `records.unreadable` counts records that say nothing.

    Such a record asks for an event of which nothing more is known; of a completion it is none.
    A record of another schema version fails the query with a line that says so: a share of those that happen to be of
    ours would be none, and the batch is not noted as read, so that a release that can read it goes on from there.
    """
    version = f.col("unknown_version").cast("string")
    refusal = f.raise_error(f.concat(f.lit("records of schema version "), version, f.lit(BESIDE)))
    intended = f.when(version.isNotNull(), refusal).otherwise(f.col("intended_us"))
    said = records.observe("records", f.count_if("unreadable").alias("unreadable"))
    completes = f.col("topic") == Topic.PAYMENTS_SETTLED.value
    return said.where(~(f.col("unreadable") & completes)).withColumn("intended_us", intended).select(*COUNTED)
