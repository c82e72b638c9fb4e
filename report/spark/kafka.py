"""Kafka as Spark reads it: the connection in Java's names, and topics that are known to be there."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from pyspark.sql import DataFrame, SparkSession

from contracts.connection import Connection
from report import ReportError

ANSWER_WITHIN_S: Final = 10.0
POLL_WITHIN_MS: Final = 30_000
PLAIN_LOGIN: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_LOGIN: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"


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
    return spark.read.format("kafka").options(**reading(options, topics), endingOffsets="latest").load()


def reading(options: Mapping[str, str], topics: Sequence[str]) -> dict[str, str]:
    """Return what a batch and a stream are told alike. options: of `kafka_options`."""
    timeout_ms = str(int(ANSWER_WITHIN_S * 1000))
    return {
        **options,
        "kafka.isolation.level": "read_committed",
        "kafka.request.timeout.ms": timeout_ms,
        "kafka.default.api.timeout.ms": timeout_ms,
        "subscribe": ",".join(topics),
        "startingOffsets": "earliest",
        "includeHeaders": "true",
        "kafkaConsumer.pollTimeoutMs": str(POLL_WITHIN_MS),  # two minutes by default, for a broker that went away
    }


def kafka_options(connection: Connection) -> dict[str, str]:
    """Return the `kafka.*` options for `connection`, a client properties file in librdkafka's names included.

    Certificates are PEM files and their content travels in the options, so that a cluster's executors need no file.
    Raises InvalidSettingsError for a bad properties file, ReportError for what Java cannot do with it.
    """
    security = connection.security()
    options = {"bootstrap.servers": connection.bootstrap_servers, "security.protocol": security.security_protocol}
    if security.ssl_ca_location:
        options |= {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": _pem(security.ssl_ca_location)}
    if security.ssl_certificate_location:
        options |= {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.certificate.chain": _pem(security.ssl_certificate_location),
            "ssl.keystore.key": _pkcs8(security.ssl_key_location),
        }
    if security.ssl_key_password:
        options["ssl.key.password"] = security.ssl_key_password
    if security.sasl_mechanism:
        options |= {
            "sasl.mechanism": security.sasl_mechanism,
            "sasl.jaas.config": _jaas(security.sasl_mechanism, security.sasl_username, security.sasl_password),
        }
    return {f"kafka.{name}": value for name, value in options.items()}


def _jaas(mechanism: str, username: str, password: str) -> str:
    """Return the login line of Java's clients; backslash and quote are the two characters it needs escaped."""
    module = PLAIN_LOGIN if mechanism == "PLAIN" else SCRAM_LOGIN
    user, secret = (text.replace("\\", "\\\\").replace('"', '\\"') for text in (username, password))
    return f'{module} required username="{user}" password="{secret}";'


def _pem(path: str) -> str:
    try:
        return Path(path).read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as wrong:
        raise ReportError(
            f"{path}: cannot be read as PEM ({wrong}); name a PEM file in the client properties"
        ) from wrong


def _pkcs8(path: str) -> str:
    key = _pem(path)
    if "PRIVATE KEY-----" in key and "-----BEGIN PRIVATE" not in key and "-----BEGIN ENCRYPTED" not in key:
        raise ReportError(f"{path}: Java reads PKCS #8 keys only; convert it with openssl pkcs8 -topk8 -in {path}")
    return key
