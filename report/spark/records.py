"""Kafka records → typed rows. Every transform is DataFrame → DataFrame; its `select` is its schema contract."""

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from contracts.events import INTENDED_AT_HEADER, PLACED_AT_HEADER, SCHEMA_VERSION
from contracts.topics import Topic
from report.spark.schema import JOURNAL, LETTER, SAYS, TIMES, VALUE


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
    said = [f.col(f"value.{name}") for name in SAYS]
    return read.select(
        "topic",
        "location",
        f.when(f.col("topic") == Topic.PAYMENTS_REQUESTED.value, f.col("place")).alias("requested_at"),
        f.coalesce("value.order_id", "key", "location").alias("event_id"),
        f.coalesce("value.timeline.intended_us", "header_intended_us", "stamped_us").alias("intended_us"),
        f.coalesce("value.timeline.placed_us", "header_placed_us", "stamped_us").alias("placed_us"),
        *[f.col(f"value.timeline.{name}").alias(name) for name in TIMES[2:]],
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
    """Return the µs in header `name`; null without it or where it is not a number."""
    found = f.get(f.filter("headers", lambda header: header["key"] == name), f.lit(0))
    return found["value"].cast("string").try_cast("bigint")
