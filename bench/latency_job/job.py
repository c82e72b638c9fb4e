"""One report: where the data comes from, then the judgement, then result.json."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec
from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # it ships no types
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from bench.latency_job.errors import ReportError
from bench.latency_job.gather import EVENTS, JOURNAL, RunTopics, gather, topics_of
from bench.latency_job.judge import judge
from bench.latency_job.schema import EVENT
from bench.latency_job.security import kafka_options
from bench.latency_job.session import LOG_FILE, jar_files, open_session, size_shuffles
from bench.latency_job.source import topics_on
from bench.report.result import RESULT_FILE, Result
from bench.run_info import RUN_FILE, RunInfo
from contracts.connection import Connection
from contracts.journal import JOURNAL_VERSION, JournalEntry
from contracts.topics import Topic

SHORT_EVENTS: Final = 300_000
"""Up to here a run is a short job for Spark."""
LINES: Final = ("events.jsonl", "events.jsonl.gz")
"""Event rows as JSON, one in each line, with the columns of events.parquet."""
WHOLE: Final = "_SUCCESS"
"""File that Spark adds to a Parquet folder last."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """Where the job runs: a Spark master, and the jars (or folders of jars) of the Kafka connector."""

    master: str
    jars: Sequence[Path]


def report_run(folder: Path, cluster: Cluster, *, reread: bool = False) -> Result:
    """Judge the run in `folder` and write result.json there.

    Its Parquet files are used when they are there, unless `reread`; else the run's topics are read and the files made.
    Raises ReportError, and InvalidSettingsError for a bad client properties file.
    """
    run = load_run(folder)
    if run.started_us is None:
        raise ReportError(
            f"{folder / RUN_FILE}: started_us is missing; the load never began, so there is nothing to judge"
        )
    stored = not reread and is_stored(folder)
    connection = Connection(
        bootstrap_servers=run.bootstrap_servers, client_properties=run.client_properties, namespace=run.run
    )
    topics = None if stored else topics_of(run, topics_on(connection))
    return _measure(folder, run, connection, topics, cluster)


def report_topic(
    folder: Path, topic: str, connection: Connection, target: tuple[float, float], cluster: Cluster
) -> Result:
    """Judge a bare timeline topic and write run.json, events.parquet and result.json into `folder`.

    target: latency target in seconds, percentile. What only a whole run knows (losses against the input, replicas,
    the schedule) stays empty. Raises ReportError.
    """
    if topic not in topics_on(connection):
        raise ReportError(f"{topic}: no such topic at {connection.bootstrap_servers}")
    folder.mkdir(parents=True, exist_ok=True)
    run = RunInfo(
        run=topic,
        scenario={"name": f"topic {topic}"},
        policy="unknown",
        seed=0,
        topology="payment-only",
        bootstrap_servers=connection.bootstrap_servers,
        client_properties=connection.client_properties,
        payment_partitions=0,
        latency_target_s=target[0],
        percentile=target[1],
        duration_s=0.0,
    )
    topics = RunTopics(events={topic: Topic.PAYMENTS_SETTLED}, dead_letters=None, journal=None)
    return _measure(folder, run, connection, topics, cluster)


def load_run(folder: Path) -> RunInfo:
    """Read folder/run.json. Raises ReportError when it is missing or not whole."""
    try:
        return RunInfo.load(folder)
    except OSError as missing:
        raise ReportError(
            f"{folder / RUN_FILE}: {missing.strerror}; name the folder of a run, as `out/NAME`"
        ) from missing
    except msgspec.DecodeError as broken:
        raise ReportError(f"{folder / RUN_FILE}: not a run's description ({broken})") from broken


def _measure(folder: Path, run: RunInfo, connection: Connection, topics: RunTopics | None, cluster: Cluster) -> Result:
    """Gather (unless the files are there), judge, save."""
    options = kafka_options(connection) if topics else {}
    short = 0 < run.events_scheduled <= SHORT_EVENTS
    spark = open_session(cluster.master, jar_files(cluster.jars), folder / LOG_FILE, short=short)
    size_shuffles(spark, run.events_scheduled)
    try:
        if topics:
            gather(spark, options, topics, folder)
        stored = events_of(spark, folder)
        if run.started_us is None:
            run = _bounds(run, stored.agg(f.min("intended_us"), f.max("intended_us")).collect()[0])
            run.save(folder)
        journal = _journal(spark, folder / JOURNAL)
        result = judge(run, run.started_us or 0, stored, journal, now_us=time.time_ns() // 1000)
    except (PySparkException, Py4JError) as failed:
        raise ReportError(
            f"{folder}: Spark could not read the run ({_cause(failed)}); {LOG_FILE} says more"
        ) from failed
    except ReportError as refused:
        raise ReportError(f"{folder}: {refused}") from refused
    try:
        result.save(folder)
    except OSError as refused:
        (folder / (RESULT_FILE + ".tmp")).unlink(missing_ok=True)
        raise ReportError(f"{folder / RESULT_FILE}: cannot be written ({refused.strerror or refused})") from refused
    return result


def events_of(spark: SparkSession, folder: Path) -> DataFrame:
    """Return the run's event rows: events.parquet, else events.jsonl or events.jsonl.gz.

    Raises ReportError when columns are missing.
    """
    lines = stored_lines(folder)
    if lines:
        return spark.read.schema(EVENT).option("mode", "FAILFAST").json(str(lines.resolve()))
    found = spark.read.parquet(str((folder / EVENTS).resolve()))
    if missing := sorted(set(EVENT.names) - set(found.columns)):
        raise ReportError(f"{EVENTS} lacks {', '.join(missing)}; is it the file of another program?")
    return found


def is_stored(folder: Path) -> bool:
    """Return whether the run's events lie in its folder, whole."""
    place = folder / EVENTS
    return place.is_file() or (place / WHOLE).exists() or stored_lines(folder) is not None


def stored_lines(folder: Path) -> Path | None:
    """Return the run's events as JSON lines; None where it has Parquet, or nothing."""
    if (folder / EVENTS).exists():
        return None
    return next((place for name in LINES if (place := folder / name).exists()), None)


def _bounds(run: RunInfo, extent: Sequence[int]) -> RunInfo:
    """Give a run that has only its events a start (whole second) and a duration."""
    started_us = extent[0] // 1_000_000 * 1_000_000
    duration_s = float(math.floor((extent[1] - started_us) / 1e6) + 1)
    return msgspec.structs.replace(run, started_us=started_us, duration_s=duration_s)


def _journal(spark: SparkSession, place: Path) -> list[JournalEntry]:
    """Return the journal's entries; none where the run wrote none."""
    if not (place / WHOLE).exists():
        return []
    decoder: msgspec.json.Decoder[JournalEntry] = msgspec.json.Decoder(JournalEntry)
    entries = []
    for row in spark.read.parquet(str(place.resolve())).orderBy("position").collect():
        try:
            entry = decoder.decode(row["entry"])
        except msgspec.DecodeError as broken:
            raise ReportError(f"{place.name}: entry {row['position']} is not a journal entry ({broken})") from broken
        if entry.v != JOURNAL_VERSION:
            raise ReportError(
                f"{place.name}: entry {row['position']} has version {entry.v}, this report reads {JOURNAL_VERSION}"
            )
        entries.append(entry)
    return entries


def _cause(failed: Exception) -> str:
    lines = [line.strip() for line in str(failed).splitlines() if line.strip()]
    causes = [line for line in lines if line.startswith("Caused by:")]
    return (causes[-1] if causes else lines[0] if lines else type(failed).__name__)[:300]
