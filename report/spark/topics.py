"""Read the events of a large run with Spark, and join them in its workers; map the connection to Java options."""

import shutil
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Final

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as f

from contracts.connection import Connection
from contracts.events import INTENDED_AT_HEADER, PLACED_AT_HEADER
from contracts.topics import Topic
from report import ReportError
from report.records import JoinedEvents, Record
from report.spark.rows import local
from report.stored import row_groups
from report.topics import ANSWER_TIMEOUT_S, RunReader

POLL_TIMEOUT_MS: Final = 30_000
LOGIN_PACKAGE: Final = "org.apache.kafka.common.security"
RECORDS_PER_FILE: Final = 500_000
"""Records that a worker joins in its memory."""


def write_events(
    place: Path, refused: Mapping[str, int], *, spark: SparkSession, options: Mapping[str, str], reader: RunReader
) -> set[int]:
    """Spread the records by their event over temporary files, and join each file in a worker: an EventWriter.

    options: from `kafka_options`.
    """
    timeout_ms = str(int(ANSWER_TIMEOUT_S * 1000))
    settings = {
        **options,
        "kafka.isolation.level": "read_committed",
        "kafka.request.timeout.ms": timeout_ms,
        "kafka.default.api.timeout.ms": timeout_ms,
        "subscribe": ",".join(reader.events),
        "includeHeaders": "true",
        "kafkaConsumer.pollTimeoutMs": str(POLL_TIMEOUT_MS),  # default: two minutes after a broker is lost
    }
    records = spark.read.format("kafka").options(**settings).load()
    location = f.concat_ws("/", "topic", "partition", "offset")
    order = f.from_json(f.col("value").cast("string"), "order_id string")["order_id"]
    rows = records.select(
        "topic", "partition", "offset", "key", "value", f.unix_micros("timestamp").alias("stamped_us"),
        _header(INTENDED_AT_HEADER).alias("intended"), _header(PLACED_AT_HEADER).alias("placed"),
        f.coalesce(order, f.col("key").cast("string"), location).alias("event_id"),
    )  # fmt: skip
    scratch = place.with_name(f"{place.name}.records")
    files = max(spark.sparkContext.defaultParallelism, -(-reader.count() // RECORDS_PER_FILE))
    try:
        rows.repartition(files, "event_id").drop("event_id").write.parquet(local(scratch))
        units = list(enumerate(dict.fromkeys(part for part, _, number in row_groups(scratch) if number)))
        join = partial(_join, topics=reader.events, refused=dict(refused), place=place)
        return set().union(*spark.sparkContext.parallelize(units, max(1, len(units))).map(join).collect())
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _join(unit: tuple[int, str], *, topics: Mapping[str, Topic], refused: Mapping[str, int], place: Path) -> set[int]:
    from pyarrow import parquet  # noqa: PLC0415  in the worker

    number, part = unit
    joined = JoinedEvents(topics, refused)
    for batch in parquet.ParquetFile(part).iter_batches(columns=Record._fields):
        for values in zip(*(batch[name].to_pylist() for name in Record._fields), strict=True):
            joined.add(Record(*values))
    return joined.write(place / f"part-{number}.parquet")


def _header(name: str) -> Column:
    return f.get(f.filter("headers", lambda header: header["key"] == name), f.lit(0))["value"]


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
        options |= {
            "sasl.mechanism": security.sasl_mechanism,
            "sasl.jaas.config": _jaas(security.sasl_mechanism, security.sasl_username, security.sasl_password),
        }
    return {f"kafka.{name}": value for name, value in options.items()}


def _jaas(mechanism: str, username: str, password: str) -> str:
    module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
    user, secret = (text.replace("\\", "\\\\").replace('"', '\\"') for text in (username, password))
    return f'{LOGIN_PACKAGE}.{module} required username="{user}" password="{secret}";'


def _pem(path: str) -> str:
    try:
        return Path(path).read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as wrong:
        remedy = "set a PEM file in the client properties"
        raise ReportError(f"{path}: cannot be read as PEM ({wrong}); {remedy}") from wrong


def _pkcs8(path: str) -> str:
    key = _pem(path)
    if "PRIVATE KEY-----" in key and "-----BEGIN PRIVATE" not in key and "-----BEGIN ENCRYPTED" not in key:
        raise ReportError(f"{path}: Java reads PKCS #8 keys only; convert it with openssl pkcs8 -topk8 -in {path}")
    return key
