"""Report on a run or on files of events, with Spark if it is needed, and write result.json."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # it ships no types
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from contracts.clock import now_us
from contracts.connection import Connection
from contracts.journal import JournalEntry
from report import ReportError, stored
from report.figures import measure, needs_spark, report_stored, save
from report.result import Result
from report.run_info import EVENTS, RunInfo, load_run, run_of_files, with_time_range
from report.spark import innermost_cause
from report.spark.rows import SparkRows
from report.spark.session import LOG_FILE, await_workers, jar_files, open_session, size_shuffles
from report.spark.topics import RunTopics, gather, kafka_options, topics_of, topics_on
from report.table import Rows

MAX_SHORT_JOB_EVENTS: Final = 300_000
"""Maximum number of events for which Spark is configured for a short job."""
SCRATCH_FOLDER: Final = "rows.tmp"
"""Folder of temporary files of a report, in the run folder."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """Where the job runs: a Spark master, and the folders with the jars of the Kafka connector."""

    master: str
    jars: Sequence[Path]


@dataclass(frozen=True, slots=True)
class Files:
    """Paths or URIs of events and journal (None: `journal.parquet` next to the events, if it exists)."""

    events: str
    journal: str | None = None


def report_run(folder: Path, cluster: Cluster, *, files: Files | None = None) -> Result:
    """Report on the run in `folder` and write result.json there.

    The events are read from `files`, or else from the run's Parquet files. If these are missing, the topics are read.
    Raises ReportError, and InvalidSettingsError for an invalid client properties file.
    """
    run = load_run(folder)
    if files:
        return _report_files(folder, run, cluster, files)
    if not needs_spark(folder / EVENTS, cluster.master):
        return report_stored(folder)
    if stored.is_complete(folder / EVENTS):
        return _report(folder, run, cluster)
    address = {"bootstrap_servers": run.bootstrap_servers, "client_properties": run.client_properties}
    connection = Connection(**address, namespace=run.run)
    try:
        present = topics_on(connection)
    except ReportError as away:
        events = folder / EVENTS
        incomplete = f"; {events} is incomplete: it has no {stored.SUCCESS_FILE}" if events.exists() else ""
        raise ReportError(f"{away}{incomplete}") from away
    return _report_topics(folder, run, cluster, connection, topics_of(run, present))


def report_files(
    folder: Path, files: Files, cluster: Cluster, *, latency_target_s: float, percentile: float, command: str = ""
) -> Result:
    """Report on events without run.json; write result.json into `folder`. Raises ReportError.

    command: origin of the report, for its provenance.
    """
    name = files.events.rstrip("/").rpartition("/")[2] or files.events
    run = run_of_files(name, f"events {files.events}", latency_target_s, percentile, command)
    return _report_files(folder, run, cluster, files)


def _report_files(folder: Path, run: RunInfo, cluster: Cluster, files: Files) -> Result:
    place = folder / SCRATCH_FOLDER / EVENTS
    place.parent.mkdir(parents=True, exist_ok=True)
    try:
        known = stored.copy_events(files.events, place)
        journal = files.journal or stored.journal_next_to(files.events)
        entries = stored.load_journal(folder) if journal is None else stored.read_journal(journal)
        return _report(folder, run, cluster, place, source=files.events, known=known, entries=entries)
    finally:
        shutil.rmtree(place.parent, ignore_errors=True)


def _report_topics(folder: Path, run: RunInfo, cluster: Cluster, connection: Connection, topics: RunTopics) -> Result:
    options = kafka_options(connection)  # before Spark starts, because it may raise
    spark = _session(folder, run, cluster)
    try:
        gather(spark, options, topics, folder)
    except (PySparkException, Py4JError) as failed:
        raise _not_read(folder, failed) from failed
    return _report(folder, run, cluster)


def _report(
    folder: Path,
    run: RunInfo,
    cluster: Cluster,
    place: Path | None = None,
    *,
    source: str = "",
    known: frozenset[str] = stored.OPTIONAL_COLUMNS,
    entries: Sequence[JournalEntry] | None = None,
) -> Result:
    """Measure the events at `place` (None: the run's own) and write result.json.

    source: name of the events in errors; empty: the folder. known: optional columns that have values.
    entries: the journal; None: that of the run.
    """
    events, report_us = place or folder / EVENTS, now_us()
    try:
        if needs_spark(events, cluster.master):
            spark = _session(folder, run, cluster)
            size_shuffles(spark, stored.count(events))
            rows: Rows = SparkRows(spark, events, folder / SCRATCH_FOLDER, known)
        else:
            rows = stored.load_events(events, known)
        if run.started_us is None:
            run = with_time_range(run, rows, now_us=report_us)
        entries = stored.load_journal(folder) if entries is None else entries
        result = measure(run, rows, entries, now_us=report_us)
    except (PySparkException, Py4JError) as failed:
        raise _not_read(folder, failed) from failed
    except ReportError as refused:
        raise ReportError(f"{source or folder}: {refused}") from refused
    finally:
        shutil.rmtree(folder / SCRATCH_FOLDER, ignore_errors=True)
    save(result, folder)
    return result


def _session(folder: Path, run: RunInfo, cluster: Cluster) -> SparkSession:
    short = 0 < run.events_scheduled <= MAX_SHORT_JOB_EVENTS
    spark = open_session(cluster.master, jar_files(cluster.jars), folder / LOG_FILE, short=short)
    await_workers(spark)
    size_shuffles(spark, run.events_scheduled)
    return spark


def _not_read(folder: Path, failed: Exception) -> ReportError:
    return ReportError(f"{folder}: Spark could not read the run ({innermost_cause(failed)}); see {folder / LOG_FILE}")
