"""Typed records → one row per event: its timeline at the first completion, and how often each topic carried it."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from contracts.topics import Topic
from report.spark.schema import COLUMN_OF

FIRST_COMPLETION = ("done_us", "received_us", "partition", "offset", "replica", "epoch")


def event_rows(records: DataFrame, refused: DataFrame | None) -> DataFrame:
    """Return the table that events.parquet holds.

    records: of `typed_records`. refused: of `refused_records`, None where no dead letter was written.
    The first completion counts: of several records the one with the smallest `done_us` tells who served the event.
    What was never done lies where it was requested.
    """
    if refused is None:
        marked = records.withColumn("dead_letters", f.lit(0).cast("long"))
    else:
        marked = records.join(f.broadcast(refused), "location", "left")
    marked = marked.repartition("event_id")  # before the sort that `min` of a struct needs: one sort instead of two
    completion = f.when(f.col("done_us").isNotNull(), f.struct(*FIRST_COMPLETION))
    grouped = marked.groupBy("event_id").agg(
        *[f.min(name).alias(name) for name in ("intended_us", "placed_us", "accepted_us", "shipped_us", "notified_us")],
        f.min(completion).alias("first"),
        f.min("requested_at").alias("requested_at"),
        f.min("customer_hash").alias("customer_hash"),
        f.max("unknown_version").alias("unknown_version"),
        f.max("accepted").alias("accepted"),
        f.coalesce(f.sum("dead_letters"), f.lit(0)).alias("dead_letters"),
        *[column for topic, prefix in COLUMN_OF.items() for column in _on(topic, prefix)],
    )
    return grouped.select(
        "event_id",
        "intended_us",
        "placed_us",
        "accepted_us",
        *[f.col(f"first.{name}").alias(name) for name in ("received_us", "done_us")],
        "shipped_us",
        "notified_us",
        *[f.coalesce(f"first.{name}", f"requested_at.{name}").alias(name) for name in ("partition", "offset")],
        *[f.col(f"first.{name}").alias(name) for name in ("replica", "epoch")],
        "customer_hash",
        "unknown_version",
        "accepted",
        "dead_letters",
        *[f"{prefix}_{what}" for prefix in COLUMN_OF.values() for what in ("records", "differ")],
    )


def _on(topic: Topic, prefix: str) -> list[Column]:
    here = f.col("topic") == topic.value
    says = f.when(here, f.col("says"))
    return [
        f.count(f.when(here, True)).alias(f"{prefix}_records"),
        f.coalesce(f.min(says) != f.max(says), f.lit(False)).alias(f"{prefix}_differ"),
    ]
