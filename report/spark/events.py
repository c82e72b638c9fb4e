"""Turn Kafka records into rows of events, with the timeline of the first completion and counts of records."""

from collections.abc import Mapping
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from contracts.events import INTENDED_AT_HEADER, PLACED_AT_HEADER, SCHEMA_VERSION
from contracts.topics import Topic
from report.stored import COLUMN_OF
from report.terms import TIME_COLUMNS

TIMELINE: Final = " long, ".join(TIME_COLUMNS) + " long, partition int, offset long, replica string, epoch long"

CONTENT_FIELDS: Final = (
    "customer", "merchant", "country", "currency", "amount_minor", "card_token", "payment_id", "decline_reason",
    "risk_score", "shipment_id", "parcel", "carrier", "promised_on", "notification_id", "text",
)  # fmt: skip
"""Fields that, with `accepted`, must agree in all records of an event on a topic. The timeline may differ."""

VALUE: Final = (
    f"v int, order_id string, accepted boolean, {', '.join(f'{name} string' for name in CONTENT_FIELDS)}, "
    f"timeline struct<{TIMELINE}>"
)
LETTER: Final = "topic string, partition int, offset long"
JOURNAL: Final = (
    "kind string, at_us long, tick long, action string, reason string, ready_replicas int, requested_replicas int, "
    "epoch long, moved int, replica string, change string"
)

FIRST_COMPLETION = ("done_us", "received_us", "partition", "offset", "replica", "epoch")
"""Columns that have the values of the first completion."""


def typed_records(kafka: DataFrame, topics: Mapping[str, Topic]) -> DataFrame:
    """Return one row per record: event, topic, hash of the content, and timeline.

    kafka: rows of the Kafka source. topics: name on the broker → topic. Records of other topics are left out.
    `requested_at`: partition and offset on Payment's topic. `unknown_version`: an unsupported schema version.
    `unreadable`: whether the record has no version, because it is not JSON or not of these schemas.
    `event_id`: the order id, else the key, else the location, so that unreadable records still count as events.
    """
    names = f.create_map(*[f.lit(text) for name, topic in topics.items() for text in (name, topic.value)])
    value = f.from_json(f.col("value").cast("string"), VALUE)
    read = kafka.select(
        names[f.col("topic")].alias("topic"),
        location("topic", "partition", "offset").alias("location"),
        f.struct("partition", "offset").alias("place"),
        value.alias("value"),
        f.col("key").cast("string").alias("key"),
        f.unix_micros("timestamp").alias("stamped_us"),
        _header(INTENDED_AT_HEADER).alias("header_intended_us"),
        _header(PLACED_AT_HEADER).alias("header_placed_us"),
    ).where(f.col("topic").isNotNull())
    content = [f.col(f"value.{name}") for name in CONTENT_FIELDS]
    return read.select(
        "topic",
        "location",
        f.when(f.col("topic") == Topic.PAYMENTS_REQUESTED.value, f.col("place")).alias("requested_at"),
        f.coalesce("value.order_id", "key", "location").alias("event_id"),
        f.coalesce("value.timeline.intended_us", "header_intended_us", "stamped_us").alias("intended_us"),
        f.coalesce("value.timeline.placed_us", "header_placed_us", "stamped_us").alias("placed_us"),
        *[f.col(f"value.timeline.{name}").alias(name) for name in TIME_COLUMNS[2:]],
        *[f.col(f"value.timeline.{name}").alias(name) for name in ("partition", "offset", "replica", "epoch")],
        f.col("value.accepted").alias("accepted"),
        f.xxhash64("value.accepted", *content).alias("content"),
        f.when(f.col("value.customer").isNotNull(), f.xxhash64("value.customer")).alias("customer_hash"),
        f.when(f.col("value.v") != SCHEMA_VERSION, f.col("value.v")).alias("unknown_version"),
        f.col("value.v").isNull().alias("unreadable"),
    )


def refused_records(letters: DataFrame) -> DataFrame:
    """Return the location of each refused record, and the number of its dead letters (column dead_letters)."""
    letter = letters.select(f.from_json(f.col("value").cast("string"), LETTER).alias("letter"))
    places = letter.select(location("letter.topic", "letter.partition", "letter.offset").alias("location"))
    return places.groupBy("location").agg(f.count("*").alias("dead_letters"))


def journal_entries(kafka: DataFrame) -> DataFrame:
    """Return the journal: `position` (offset), columns for queries, and the complete `entry` as JSON."""
    entry = f.col("value").cast("string")
    return kafka.select(
        f.col("offset").alias("position"), f.from_json(entry, JOURNAL).alias("read"), entry.alias("entry")
    ).select("position", "read.*", "entry")


def location(topic: str, partition: str, offset: str) -> Column:
    """Return "topic/partition/offset"."""
    return f.concat_ws("/", f.col(topic), f.col(partition), f.col(offset))


def _header(name: str) -> Column:
    found = f.get(f.filter("headers", lambda header: header["key"] == name), f.lit(0))
    return found["value"].cast("string").try_cast("bigint")


def event_rows(records: DataFrame, refused: DataFrame | None) -> DataFrame:
    """Return the rows of events.parquet.

    records: from `typed_records`. refused: from `refused_records`; None: no dead letters.
    If an event was completed several times, the record with the smallest `done_us` counts.
    An event that was never completed has the partition and offset of its request.
    """
    unmarked = records.withColumn("dead_letters", f.lit(0).cast("long"))
    marked = unmarked if refused is None else records.join(f.broadcast(refused), "location", "left")
    marked = marked.repartition("event_id")  # here, so that the sort for `min` of a struct can reuse it
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
        *("event_id", "intended_us", "placed_us", "accepted_us"),
        *[f.col(f"first.{name}").alias(name) for name in ("received_us", "done_us")],
        *("shipped_us", "notified_us"),
        *[f.coalesce(f"first.{name}", f"requested_at.{name}").alias(name) for name in ("partition", "offset")],
        *[f.col(f"first.{name}").alias(name) for name in ("replica", "epoch")],
        *("customer_hash", "unknown_version", "accepted", "dead_letters"),
        *[f"{prefix}_{suffix}" for prefix in COLUMN_OF.values() for suffix in ("records", "differ")],
    )


def _on(topic: Topic, prefix: str) -> list[Column]:
    here = f.col("topic") == topic.value
    content = f.when(here, f.col("content"))
    return [
        f.count(f.when(here, True)).alias(f"{prefix}_records"),
        f.coalesce(f.min(content) != f.max(content), f.lit(False)).alias(f"{prefix}_differ"),
    ]
