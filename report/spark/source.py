"""Spark's Kafka batch source, asked only for topics that are known to be there."""

from collections.abc import Mapping, Sequence
from typing import Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from pyspark.sql import DataFrame, SparkSession

from contracts.connection import Connection
from report.spark.errors import ReportError

ANSWER_WITHIN_S: Final = 10.0
POLL_WITHIN_MS: Final = 30_000


def topics_on(connection: Connection) -> frozenset[str]:
    """Return the names of the broker's topics. Raises ReportError when it does not answer in time."""
    quiet = {"log_level": 0, "error_cb": lambda _: None}  # the exception says it already
    try:
        listed = AdminClient({**connection.librdkafka(), **quiet}).list_topics(timeout=ANSWER_WITHIN_S)
    except KafkaException as away:
        raise ReportError(
            f"Kafka at {connection.bootstrap_servers} does not answer ({away.args[0].str()}): start it, "
            "or report from a run folder that holds events.parquet"
        ) from away
    return frozenset(listed.topics)


def read_topics(spark: SparkSession, options: Mapping[str, str], topics: Sequence[str]) -> DataFrame:
    """Return every committed record of `topics`, headers included: the columns of Spark's Kafka source."""
    timeout_ms = str(int(ANSWER_WITHIN_S * 1000))
    return (
        spark.read.format("kafka")
        .options(**options)
        .option("kafka.isolation.level", "read_committed")
        .option("kafka.request.timeout.ms", timeout_ms)
        .option("kafka.default.api.timeout.ms", timeout_ms)
        .option("subscribe", ",".join(topics))
        .option("startingOffsets", "earliest")
        .option("endingOffsets", "latest")
        .option("includeHeaders", "true")
        .option("kafkaConsumer.pollTimeoutMs", POLL_WITHIN_MS)  # two minutes by default, for a broker that went away
        .load()
    )
