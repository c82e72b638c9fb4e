"""One report: read the events and the journal, measure and explain them, write result.json."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec
from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # it ships no types
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from contracts.clock import now_us
from contracts.connection import Connection
from contracts.journal import JournalEntry
from contracts.topics import Topic
from report import ReportError, stored
from report.figures import begun, in_memory, measure, needs_spark, report_stored, save
from report.result import Result
from report.run_info import EVENTS, JOURNAL, RunInfo
from report.spark import cause
from report.spark.files import Events, Files, beside, local, read_events, read_journal
from report.spark.rows import HandedOut
from report.spark.session import LOG_FILE, await_workers, jar_files, open_session, size_shuffles
from report.spark.topics import RunTopics, gather, kafka_options, topics_of, topics_on
from report.table import Rows

SHORT_EVENTS: Final = 300_000
"""Up to here a run is a short job for Spark."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """Where the job runs: a Spark master, and the jars (or folders of jars) of the Kafka connector."""

    master: str
    jars: Sequence[Path]


def report_run(folder: Path, cluster: Cluster, *, files: Files | None = None, reread: bool = False) -> Result:
    """Report on the run in `folder` and write result.json there.

    Its events are those of `files`, else of its Parquet files where they are there, unless `reread`; else the run's
    topics are read and the files made. Raises ReportError, and InvalidSettingsError for a bad client properties file.
    """
    run = stored.load_run(folder)
    begun(run, folder)
    if not files and not reread and not needs_spark(folder, cluster.master):
        return report_stored(folder)
    if files or (not reread and stored.is_whole(folder / EVENTS)):
        return _report(folder, run, cluster, files=files)
    where = {"bootstrap_servers": run.bootstrap_servers, "client_properties": run.client_properties}
    connection = Connection(**where, namespace=run.run)
    try:
        present = topics_on(connection)
    except ReportError as away:
        torn = f"; {folder / EVENTS} is not whole: it holds no {stored.WHOLE}" if (folder / EVENTS).exists() else ""
        raise ReportError(f"{away}{torn}") from away
    return _report(folder, run, cluster, topics=(connection, topics_of(run, present)))


def report_topic(folder: Path, topic: str, connection: Connection, promise: stored.Promise, cluster: Cluster) -> Result:
    """Report on a bare timeline topic; write run.json, events.parquet and result.json into `folder`.

    What only a whole run knows (losses against the input, replicas, the schedule) stays empty. Raises ReportError.
    """
    run = stored.unknown_run(topic, f"topic {topic}", promise)
    if topic not in topics_on(connection):
        raise ReportError(f"{topic}: no such topic at {connection.bootstrap_servers}")
    folder.mkdir(parents=True, exist_ok=True)
    where = {"bootstrap_servers": connection.bootstrap_servers, "client_properties": connection.client_properties}
    run = msgspec.structs.replace(run, **where)
    return _report(folder, run, cluster, topics=(connection, RunTopics({topic: Topic.PAYMENTS_SETTLED})))


def report_files(folder: Path, files: Files, promise: stored.Promise, cluster: Cluster, *, command: str = "") -> Result:
    """Report on events of which nothing else is known; write result.json into `folder`.

    command: what makes this report. Raises ReportError.
    """
    name = files.events.rstrip("/").rpartition("/")[2] or files.events
    run = msgspec.structs.replace(stored.unknown_run(name, f"events {files.events}", promise), command=command)
    folder.mkdir(parents=True, exist_ok=True)
    return _report(folder, run, cluster, files=files)


def _report(
    folder: Path,
    run: RunInfo,
    cluster: Cluster,
    *,
    topics: tuple[Connection, RunTopics] | None = None,
    files: Files | None = None,
) -> Result:
    """Read from topics (None: the files are there), measure, write. files: elsewhere than in `folder`."""
    place = files.events if files else folder
    options = kafka_options(topics[0]) if topics else {}  # before Spark starts: it may be refused
    short = 0 < run.events_scheduled <= SHORT_EVENTS
    spark = open_session(cluster.master, jar_files(cluster.jars), folder / LOG_FILE, short=short)
    await_workers(spark)
    size_shuffles(spark, run.events_scheduled)
    handed_out: HandedOut | None = None
    try:
        if topics:
            gather(spark, options, topics[1], folder)
        asked_us = now_us()
        rows = _rows(spark, folder, files, in_memory(cluster.master))
        handed_out = rows if isinstance(rows, HandedOut) else None
        if run.world == "unknown" and not files:  # a bare topic holds what was done
            rows.known -= {stored.ASKED, stored.LETTERS}
        if run.started_us is None:
            run = stored.bounded(run, rows, now_us=asked_us)
            if topics:
                run.save(folder)
        result = measure(run, rows, _journal(spark, folder, files), now_us=asked_us)
    except (PySparkException, Py4JError) as failed:
        more = f"{folder / LOG_FILE} says more"
        raise ReportError(f"{place}: Spark could not read the run ({cause(failed)}); {more}") from failed
    except ReportError as refused:
        raise ReportError(f"{place}: {refused}") from refused
    finally:
        if handed_out:
            handed_out.close()
    save(result, folder)
    return result


def _rows(spark: SparkSession, folder: Path, files: Files | None, most: int) -> Rows:
    if files:
        events = read_events(spark, files.events)
        number = events.rows.count()
        if number <= most:
            return stored.Stored(events.rows.drop("event_id").toArrow(), events.known)
    else:
        number = stored.count(folder / EVENTS)
        if number <= most:
            return stored.stored_events(folder)
        stored.check_columns(folder)
        events = Events(spark.read.parquet(local(folder / EVENTS)))
    size_shuffles(spark, number)
    return HandedOut(events, folder, None if files else folder / EVENTS)


def _journal(spark: SparkSession, folder: Path, files: Files | None) -> list[JournalEntry]:
    """Return the entries of the journal that `files` name, else of that beside them, else of that in `folder`.

    None where the run wrote none. Raises ReportError as `read_journal` does.
    """
    place = (files.journal or beside(spark, files.events, JOURNAL)) if files else None
    if place is None:
        return stored.stored_journal(folder)
    try:
        return read_journal(spark, place)
    except ReportError as refused:
        raise ReportError(f"its journal {place}: {refused}") from refused
