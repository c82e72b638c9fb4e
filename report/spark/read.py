"""Where a run's events and its journal are read from: its topics, the files in its folder, or files elsewhere."""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from contracts.journal import JournalEntry
from contracts.topics import Topic, qualified
from report import ReportError
from report.run_info import EVENTS, JOURNAL, RunInfo
from report.spark.events import event_rows, journal_entries, refused_records, typed_records
from report.spark.files import Files, beside, local, other_version, read_journal
from report.spark.kafka import read_topics
from report.stored import COLUMN_OF, stored_journal


@dataclass(frozen=True, slots=True)
class RunTopics:
    """Names on the broker of what a report reads; None for what is not there."""

    events: Mapping[str, Topic]
    dead_letters: str | None = None
    journal: str | None = None


def topics_of(run: RunInfo, present: frozenset[str]) -> RunTopics:
    """Return the topics of `run` among those `present`. Raises ReportError when the input topic is not."""
    wanted = list(COLUMN_OF) if run.topology == "pipeline" else [Topic.PAYMENTS_REQUESTED, Topic.PAYMENTS_SETTLED]
    names = {qualified(run.run, topic): topic for topic in wanted}
    first = next(iter(names))
    if first not in present:
        raise ReportError(f"{first}: no such topic at {run.bootstrap_servers}; was this run's broker another one?")
    letters, journal = qualified(run.run, Topic.DEAD_LETTERS), qualified(run.run, Topic.JOURNAL)
    return RunTopics(
        events={name: topic for name, topic in names.items() if name in present},
        dead_letters=letters if letters in present else None,
        journal=journal if journal in present else None,
    )


def gather(spark: SparkSession, options: Mapping[str, str], topics: RunTopics, folder: Path) -> None:
    """Read `topics` once and write events.parquet and journal.parquet. Each appears whole or not at all.

    Raises ReportError when no event was produced, records have a schema version that is not ours, or the files cannot
    be written.
    """
    records = typed_records(read_topics(spark, options, list(topics.events)), topics.events)
    letters = read_topics(spark, options, [topics.dead_letters]) if topics.dead_letters else None
    frames = {folder / EVENTS: event_rows(records, refused_records(letters) if letters is not None else None)}
    if topics.journal:  # it gets its name first: nobody shall take events without their journal for all there is
        frames = {folder / JOURNAL: journal_entries(read_topics(spark, options, [topics.journal])), **frames}
    temporaries = {place: place.with_name(place.name + ".tmp") for place in frames}
    try:
        for place, frame in frames.items():
            shutil.rmtree(temporaries[place], ignore_errors=True)
            frame.write.parquet(local(temporaries[place]))
        _refuse(spark.read.parquet(local(temporaries[folder / EVENTS])), ", ".join(topics.events))
        for place, temporary in temporaries.items():
            shutil.rmtree(place, ignore_errors=True)
            temporary.rename(place)
    except OSError as refused:
        raise ReportError(f"{refused.filename}: cannot be written ({refused.strerror or refused})") from refused
    finally:
        for temporary in temporaries.values():
            shutil.rmtree(temporary, ignore_errors=True)


def journal_of(spark: SparkSession, folder: Path, files: Files | None = None) -> list[JournalEntry]:
    """Return the entries of the journal that `files` name, else of that beside them, else of that in `folder`.

    None where the run wrote none. Raises ReportError as `read_journal` does.
    """
    place = (files.journal or beside(spark, files.events, JOURNAL)) if files else None
    if place is None:
        return stored_journal(folder)
    try:
        return read_journal(spark, place)
    except ReportError as refused:
        raise ReportError(f"its journal {place}: {refused}") from refused


def _refuse(written: DataFrame, names: str) -> None:
    found = written.agg(f.count("*").alias("events"), f.collect_set("unknown_version").alias("versions")).collect()[0]
    if not found["events"]:
        raise ReportError(f"{names}: empty; nothing was produced, so there is nothing to report on")
    if found["versions"]:
        versions = ", ".join(map(str, sorted(found["versions"])))
        raise ReportError(f"{names}: {other_version(versions)}")
