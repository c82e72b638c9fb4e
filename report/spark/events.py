"""Kafka's records → one row per event: its timeline at the first completion, and how often each topic carried it."""

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
"""Fields that, with `accepted`, tell whether two records of one event say the same. The timeline may differ."""

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
"""What is told by the completion that counts."""


def typed_records(kafka: DataFrame, topics: Mapping[str, Topic]) -> DataFrame:
    """Return one row per record: which event, on which topic, what it says, and its timeline.

    kafka: rows of the Kafka source. topics: name on the broker → topic; other records are left out.
    `requested_at` is the place of a record on Payment's topic. `unknown_version` is a schema version that is not ours;
    `unreadable` a record that names none, because it is not JSON or not of these schemas.
    `event_id` is the order id, else the key, else the place: what cannot be parsed is still an event to account for.
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
    said = [f.col(f"value.{name}") for name in CONTENT_FIELDS]
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
        f.xxhash64("value.accepted", *said).alias("says"),
        f.when(f.col("value.customer").isNotNull(), f.xxhash64("value.customer")).alias("customer_hash"),
        f.when(f.col("value.v") != SCHEMA_VERSION, f.col("value.v")).alias("unknown_version"),
        f.col("value.v").isNull().alias("unreadable"),
    )


def refused_records(letters: DataFrame) -> DataFrame:
    """Return location, dead_letters: the records that dead letters speak of, and how many letters each has."""
    letter = letters.select(f.from_json(f.col("value").cast("string"), LETTER).alias("letter"))
    places = letter.select(location("letter.topic", "letter.partition", "letter.offset").alias("location"))
    return places.groupBy("location").agg(f.count("*").alias("dead_letters"))


def journal_entries(kafka: DataFrame) -> DataFrame:
    """Return the journal in its order: `position`, the columns people query, and each whole `entry` as JSON."""
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
    """Return the table that events.parquet holds.

    records: of `typed_records`. refused: of `refused_records`, None where no dead letter was written.
    The first completion counts: of several records the one with the smallest `done_us` tells who served the event.
    What was never done lies where it was requested.
    """
    unmarked = records.withColumn("dead_letters", f.lit(0).cast("long"))
    marked = unmarked if refused is None else records.join(f.broadcast(refused), "location", "left")
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
        *("event_id", "intended_us", "placed_us", "accepted_us"),
        *[f.col(f"first.{name}").alias(name) for name in ("received_us", "done_us")],
        *("shipped_us", "notified_us"),
        *[f.coalesce(f"first.{name}", f"requested_at.{name}").alias(name) for name in ("partition", "offset")],
        *[f.col(f"first.{name}").alias(name) for name in ("replica", "epoch")],
        *("customer_hash", "unknown_version", "accepted", "dead_letters"),
        *[f"{prefix}_{what}" for prefix in COLUMN_OF.values() for what in ("records", "differ")],
    )


def _on(topic: Topic, prefix: str) -> list[Column]:
    here = f.col("topic") == topic.value
    says = f.when(here, f.col("says"))
    return [
        f.count(f.when(here, True)).alias(f"{prefix}_records"),
        f.coalesce(f.min(says) != f.max(says), f.lit(False)).alias(f"{prefix}_differ"),
    ]
