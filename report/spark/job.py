"""Make a report that may need Spark: find events and journal, compute the figures, and write result.json."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # it ships no types
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from contracts.clock import now_us
from contracts.journal import JournalEntry
from report import ReportError, stored
from report.figures import measure, save
from report.result import Result
from report.run_info import EVENTS, RunInfo, load_run, run_of_files, with_time_range
from report.spark import innermost_cause
from report.spark.rows import SparkRows
from report.spark.session import LOG_FILE, await_workers, open_session, size_shuffles
from report.spark.topics import write_events
from report.table import Rows
from report.topics import RunReader, gather, report_here

LOCAL_MASTER: Final = "local[2]"
SCRATCH_FOLDER: Final = "rows.tmp"
"""Folder of temporary files of a report, in the run folder."""


@dataclass(frozen=True, slots=True)
class Files:
    """Paths or URIs of events and journal (None: `journal.parquet` next to the events, if it exists)."""

    events: str
    journal: str | None = None


def report_run(folder: Path, master: str, *, files: Files | None = None) -> Result:
    """Report on the run in `folder` and write result.json there.

    master: of Spark; empty: only a run that is too large for this process uses Spark, on this machine.
    Its events are those of `files`, else of its Parquet files. If it has none, its topics are read into such files.
    Raises ReportError, and InvalidSettingsError for an invalid client properties file.
    """
    run = load_run(folder)
    if files:
        return _report_files(folder, run, master, files)
    if not master and (result := report_here(folder)):
        return result
    if not stored.is_complete(folder / EVENTS):
        reader, spark = RunReader(folder), _session(folder, run, master)
        try:
            gather(reader, folder, partial(write_events, spark=spark, reader=reader))
        except (PySparkException, Py4JError) as failed:
            raise _not_read(folder, failed) from failed
    return _report(folder, run, master)


def report_files(
    folder: Path, files: Files, master: str, *, latency_target_s: float, percentile: float, command: str = ""
) -> Result:
    """Report on events without run.json; write result.json into `folder`. Raises ReportError.

    command: origin of the report, for its provenance.
    """
    name = files.events.rstrip("/").rpartition("/")[2] or files.events
    run = run_of_files(name, f"events {files.events}", latency_target_s, percentile, command)
    return _report_files(folder, run, master, files)


def _report_files(folder: Path, run: RunInfo, master: str, files: Files) -> Result:
    place = folder / SCRATCH_FOLDER / EVENTS
    place.parent.mkdir(parents=True, exist_ok=True)
    try:
        known = stored.copy_events(files.events, place)
        journal = files.journal or stored.journal_next_to(files.events)
        entries = stored.load_journal(folder) if journal is None else stored.read_journal(journal)
        return _report(folder, run, master, place, source=files.events, known=known, entries=entries)
    finally:
        shutil.rmtree(place.parent, ignore_errors=True)


def _report(
    folder: Path,
    run: RunInfo,
    master: str,
    place: Path | None = None,
    *,
    source: str = "",
    known: frozenset[str] = stored.OPTIONAL_COLUMNS,
    entries: Sequence[JournalEntry] | None = None,
) -> Result:
    """Measure the events at `place` (None: the run's own) and write result.json.

    source: name of the events in errors. known: optional columns that have values. entries: None: the own journal.
    """
    events, report_us = place or folder / EVENTS, now_us()
    try:
        if master or stored.count(events) > stored.MAX_EVENTS_IN_MEMORY:
            spark = _session(folder, run, master)
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


def _session(folder: Path, run: RunInfo, master: str) -> SparkSession:
    spark = open_session(master or LOCAL_MASTER, folder / LOG_FILE)
    await_workers(spark)
    size_shuffles(spark, run.events_scheduled)
    return spark


def _not_read(folder: Path, failed: Exception) -> ReportError:
    return ReportError(f"{folder}: Spark could not read the run ({innermost_cause(failed)}); see {folder / LOG_FILE}")
