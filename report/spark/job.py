"""One report: where the data comes from, then the judgement, then result.json."""

import re
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec
from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # it ships no types
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from contracts.connection import Connection
from contracts.journal import JournalEntry
from contracts.topics import Topic
from report.result import RESULT_FILE, Result
from report.run_info import RUN_FILE, RunInfo
from report.spark.bare import Promise, bounded, unknown_run
from report.spark.errors import ReportError
from report.spark.files import Files, read_events, read_journal
from report.spark.gather import EVENTS, JOURNAL, RunTopics, gather, topics_of
from report.spark.hadoop import beside, local
from report.spark.judge import judge
from report.spark.masters import await_workers
from report.spark.security import kafka_options
from report.spark.session import LOG_FILE, jar_files, open_session, size_shuffles
from report.spark.source import topics_on

SHORT_EVENTS: Final = 300_000
"""Up to here a run is a short job for Spark."""
LINES: Final = ("events.jsonl", "events.jsonl.gz")
"""Event rows as JSON, one in each line, with the columns of events.parquet."""
WHOLE: Final = "_SUCCESS"
"""File that Spark adds to a Parquet folder last."""


CLASS: Final = re.compile(r"^(Caused by: )?([\w$.]+(Exception|Error): )?")
"""How a line of Java begins that names a cause."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """Where the job runs: a Spark master, and the jars (or folders of jars) of the Kafka connector."""

    master: str
    jars: Sequence[Path]


def report_run(folder: Path, cluster: Cluster, *, files: Files | None = None, reread: bool = False) -> Result:
    """Judge the run in `folder` and write result.json there.

    Its events are those of `files`, else of its Parquet files where they are there, unless `reread`; else the run's
    topics are read and the files made. Raises ReportError, and InvalidSettingsError for a bad client properties file.
    """
    run = load_run(folder)
    if run.started_us is None:
        raise ReportError(
            f"{folder / RUN_FILE}: started_us is missing; the load never began, so there is nothing to judge"
        )
    if files or (not reread and is_stored(folder)):
        return _measure(folder, run, cluster, files=files)
    connection = Connection(
        bootstrap_servers=run.bootstrap_servers, client_properties=run.client_properties, namespace=run.run
    )
    try:
        present = topics_on(connection)
    except ReportError as away:
        torn = f"; {folder / EVENTS} is not whole: it holds no {WHOLE}" if (folder / EVENTS).exists() else ""
        raise ReportError(f"{away}{torn}") from away
    return _measure(folder, run, cluster, topics=(connection, topics_of(run, present)))


def report_topic(folder: Path, topic: str, connection: Connection, promise: Promise, cluster: Cluster) -> Result:
    """Judge a bare timeline topic and write run.json, events.parquet and result.json into `folder`.

    What only a whole run knows (losses against the input, replicas, the schedule) stays empty. Raises ReportError.
    """
    run = unknown_run(topic, f"topic {topic}", promise)
    if topic not in topics_on(connection):
        raise ReportError(f"{topic}: no such topic at {connection.bootstrap_servers}")
    folder.mkdir(parents=True, exist_ok=True)
    run = msgspec.structs.replace(
        run, bootstrap_servers=connection.bootstrap_servers, client_properties=connection.client_properties
    )
    topics = RunTopics(events={topic: Topic.PAYMENTS_SETTLED}, dead_letters=None, journal=None)
    return _measure(folder, run, cluster, topics=(connection, topics))


def report_files(folder: Path, files: Files, promise: Promise, cluster: Cluster, *, command: str = "") -> Result:
    """Judge events of which nothing else is known, and write result.json into `folder`.

    command: what makes this report. Raises ReportError.
    """
    name = files.events.rstrip("/").rpartition("/")[2] or files.events
    run = msgspec.structs.replace(unknown_run(name, f"events {files.events}", promise), command=command)
    folder.mkdir(parents=True, exist_ok=True)
    return _measure(folder, run, cluster, files=files)


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


def _measure(
    folder: Path,
    run: RunInfo,
    cluster: Cluster,
    *,
    topics: tuple[Connection, RunTopics] | None = None,
    files: Files | None = None,
) -> Result:
    """Gather from topics (None: the files are there), judge, save. files: elsewhere than in `folder`."""
    place = files.events if files else folder
    options = kafka_options(topics[0]) if topics else {}
    short = 0 < run.events_scheduled <= SHORT_EVENTS
    spark = open_session(cluster.master, jar_files(cluster.jars), folder / LOG_FILE, short=short)
    await_workers(spark)
    size_shuffles(spark, run.events_scheduled)
    try:
        if topics:
            gather(spark, options, topics[1], folder)
        now_us = time.time_ns() // 1000
        with ThreadPoolExecutor(1) as beside:
            reading = beside.submit(_journal, spark, folder, files)
            stored = read_events(spark, files.events, ours=False) if files else events_of(spark, folder)
            if run.started_us is None:
                run = bounded(run, stored, now_us=now_us)
                size_shuffles(spark, stored.count())
                if topics:
                    run.save(folder)
            result = judge(run, run.started_us or 0, stored, reading, now_us=now_us)
    except (PySparkException, Py4JError) as failed:
        raise ReportError(
            f"{place}: Spark could not read the run ({cause(failed)}); {folder / LOG_FILE} says more"
        ) from failed
    except ReportError as refused:
        raise ReportError(f"{place}: {refused}") from refused
    try:
        result.save(folder)
    except OSError as refused:
        (folder / (RESULT_FILE + ".tmp")).unlink(missing_ok=True)
        raise ReportError(f"{folder / RESULT_FILE}: cannot be written ({refused.strerror or refused})") from refused
    return result


def events_of(spark: SparkSession, folder: Path) -> DataFrame:
    """Return the run's event rows: events.parquet, else events.jsonl or events.jsonl.gz.

    Raises ReportError as `read_events` does.
    """
    place = stored_lines(folder) or folder / EVENTS
    try:
        return read_events(spark, local(place), ours=True)
    except ReportError as refused:
        raise ReportError(f"{place.name}: {refused}") from refused


def is_stored(folder: Path) -> bool:
    """Return whether the run's events lie in its folder, whole."""
    return is_whole(folder / EVENTS) or stored_lines(folder) is not None


def is_whole(place: Path) -> bool:
    """Return whether `place` is a Parquet file, or a folder that Spark finished."""
    return place.is_file() or (place / WHOLE).exists()


def stored_lines(folder: Path) -> Path | None:
    """Return the run's events as JSON lines; None where it has Parquet, or nothing."""
    if (folder / EVENTS).exists():
        return None
    return next((place for name in LINES if (place := folder / name).exists()), None)


def _journal(spark: SparkSession, folder: Path, files: Files | None) -> list[JournalEntry]:
    """Return the journal's entries; none where the run wrote none."""
    own = local(folder / JOURNAL) if is_whole(folder / JOURNAL) else None
    place = (files.journal or beside(spark, files.events, JOURNAL) or own) if files else own
    if place is None:
        return []
    try:
        return read_journal(spark, place)
    except ReportError as refused:
        raise ReportError(f"its journal {place}: {refused}" if files else f"{JOURNAL}: {refused}") from refused


def cause(failed: Exception) -> str:
    """Return the innermost cause that Spark names, in one line, without the names of its classes."""
    lines = [line.strip() for line in str(failed).splitlines() if line.strip()]
    causes = [line for line in lines if line.startswith("Caused by:")]
    said = causes[-1] if causes else lines[0] if lines else type(failed).__name__
    return CLASS.sub("", said).partition(" SQLSTATE")[0].rstrip(".")[:300]
