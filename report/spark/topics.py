"""Read the topics of a run with Spark into events.parquet and journal.parquet; map the connection to Java options."""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from contracts.connection import Connection
from contracts.plan import plan_key
from contracts.topics import Group, Topic, qualified
from report import ReportError
from report.run_info import EVENTS, JOURNAL, RunInfo
from report.spark.events import event_rows, journal_entries, refused_records, typed_records
from report.spark.rows import local
from report.stored import COLUMN_OF, version_error

ANSWER_TIMEOUT_S: Final = 10.0
POLL_TIMEOUT_MS: Final = 30_000
LOGIN_PACKAGE: Final = "org.apache.kafka.common.security"


@dataclass(frozen=True, slots=True)
class RunTopics:
    """Names on the broker of the topics of a run; None: the topic does not exist."""

    events: Mapping[str, Topic]
    dead_letters: str | None = None
    journal: str | None = None


def topics_on(connection: Connection) -> frozenset[str]:
    """Return the names of the topics on the broker. Raises ReportError if it does not answer in time."""
    quiet = {"log_level": 0, "error_cb": lambda _: None}  # the exception has the message
    try:
        listed = AdminClient({**connection.librdkafka(), **quiet}).list_topics(timeout=ANSWER_TIMEOUT_S)
    except KafkaException as away:
        reason, remedy = away.args[0].str(), "start it, or use a run folder with events.parquet"
        raise ReportError(f"Kafka at {connection.bootstrap_servers} does not answer ({reason}): {remedy}") from away
    return frozenset(listed.topics)


def read_topics(spark: SparkSession, options: Mapping[str, str], topics: Sequence[str]) -> DataFrame:
    """Return all committed records of `topics` with headers. options: from `kafka_options`."""
    timeout_ms = str(int(ANSWER_TIMEOUT_S * 1000))
    settings = {
        **options,
        "kafka.isolation.level": "read_committed",
        "kafka.request.timeout.ms": timeout_ms,
        "kafka.default.api.timeout.ms": timeout_ms,
        "subscribe": ",".join(topics),
        "includeHeaders": "true",
        "kafkaConsumer.pollTimeoutMs": str(POLL_TIMEOUT_MS),  # default: two minutes after a broker is lost
    }
    return spark.read.format("kafka").options(**settings).load()


def kafka_options(connection: Connection) -> dict[str, str]:
    """Return the `kafka.*` options for `connection`, including those of its client properties file.

    The options contain the PEM certificates, so that the executors of a cluster need no files. Raises
    InvalidSettingsError for an invalid properties file, ReportError for settings that Java does not support.
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
        module = "plain.PlainLoginModule" if security.sasl_mechanism == "PLAIN" else "scram.ScramLoginModule"
        login = (security.sasl_username, security.sasl_password)
        user, secret = (text.replace("\\", "\\\\").replace('"', '\\"') for text in login)
        options["sasl.mechanism"] = security.sasl_mechanism
        options["sasl.jaas.config"] = f'{LOGIN_PACKAGE}.{module} required username="{user}" password="{secret}";'
    return {f"kafka.{name}": value for name, value in options.items()}


def _pem(path: str) -> str:
    try:
        return Path(path).read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as wrong:
        raise ReportError(f"{path}: is no readable PEM file ({wrong}); correct the client properties") from wrong


def _pkcs8(path: str) -> str:
    key = _pem(path)
    if "PRIVATE KEY-----" in key and "-----BEGIN PRIVATE" not in key and "-----BEGIN ENCRYPTED" not in key:
        raise ReportError(f"{path}: Java reads PKCS #8 keys only; convert it with openssl pkcs8 -topk8 -in {path}")
    return key


def topics_of(run: RunInfo, present: frozenset[str]) -> RunTopics:
    """Return the topics of `run` among those `present`. Raises ReportError if the input topic is missing."""
    wanted = list(COLUMN_OF) if run.topology == "pipeline" else [Topic.PAYMENTS_REQUESTED, Topic.PAYMENTS_SETTLED]
    names = {qualified(run.run, topic): topic for topic in wanted}
    first = next(iter(names))
    if first not in present:
        raise ReportError(f"{first}: no such topic at {run.bootstrap_servers}; check that the run used this broker")
    also = (qualified(run.run, topic) for topic in (Topic.DEAD_LETTERS, Topic.JOURNAL))
    letters, journal = (name if name in present else None for name in also)
    return RunTopics({name: topic for name, topic in names.items() if name in present}, letters, journal)


def gather(spark: SparkSession, options: Mapping[str, str], topics: RunTopics, folder: Path) -> None:
    """Read `topics` once and write events.parquet and journal.parquet atomically.

    Raises ReportError if no event was produced, a schema version is not supported, or the files cannot be written.
    """
    records = typed_records(read_topics(spark, options, list(topics.events)), topics.events)
    letters = read_topics(spark, options, [topics.dead_letters]) if topics.dead_letters else None
    frames = {folder / EVENTS: event_rows(records, refused_records(letters) if letters is not None else None)}
    if topics.journal:  # renamed first, so that events never exist without their journal
        space = topics.journal.removesuffix(Topic.JOURNAL)
        key = plan_key(space + Group.PAYMENT, space + Topic.PAYMENTS_REQUESTED)
        own = f.coalesce(f.col("key") == f.lit(key), f.lit(True))  # earlier versions wrote no key
        frames = {folder / JOURNAL: journal_entries(read_topics(spark, options, [topics.journal]).where(own)), **frames}
    temporaries = {place: place.with_name(place.name + ".tmp") for place in frames}
    try:
        for place, frame in frames.items():
            shutil.rmtree(temporaries[place], ignore_errors=True)
            frame.write.parquet(local(temporaries[place]))
        _check_events(spark.read.parquet(local(temporaries[folder / EVENTS])), ", ".join(topics.events))
        for place, temporary in temporaries.items():
            shutil.rmtree(place, ignore_errors=True)
            temporary.rename(place)
    except OSError as refused:
        raise ReportError(f"{refused.filename}: cannot be written ({refused.strerror or refused})") from refused
    finally:
        for temporary in temporaries.values():
            shutil.rmtree(temporary, ignore_errors=True)


def _check_events(written: DataFrame, names: str) -> None:
    events, versions = written.agg(f.count("*"), f.collect_set("unknown_version")).collect()[0]
    if not events:
        raise ReportError(f"{names}: no event was produced, so there is nothing to report")
    if versions:
        raise ReportError(f"{names}: {version_error(versions)}")
