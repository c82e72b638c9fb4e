"""Topics → events.parquet and journal.parquet in the run's folder. Each appears whole or not at all."""

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from contracts.topics import Topic, qualified
from report.run_info import RunInfo
from report.spark.errors import ReportError
from report.spark.events import event_rows
from report.spark.files import other_version
from report.spark.hadoop import local
from report.spark.records import journal_entries, refused_records, typed_records
from report.spark.schema import COLUMN_OF
from report.spark.source import read_topics

EVENTS: Final = "events.parquet"
JOURNAL: Final = "journal.parquet"


@dataclass(frozen=True, slots=True)
class RunTopics:
    """Names on the broker of what a report reads; None for what is not there."""

    events: Mapping[str, Topic]
    dead_letters: str | None
    journal: str | None


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
    """Read `topics` once and write both Parquet folders.

    Raises ReportError when no event was produced, or records have a schema version that is not ours.
    """
    records = typed_records(read_topics(spark, options, list(topics.events)), topics.events)
    letters = read_topics(spark, options, [topics.dead_letters]) if topics.dead_letters else None
    names = ", ".join(topics.events)
    rows = event_rows(records, refused_records(letters) if letters is not None else None)
    frames = {folder / EVENTS: rows}
    if topics.journal:  # it gets its name first: events without their journal would be judged without it
        frames = {folder / JOURNAL: journal_entries(read_topics(spark, options, [topics.journal])), **frames}
    write_whole(frames, lambda place, written: _refuse(written, names) if place.name == EVENTS else None)


def write_whole(
    frames: Mapping[Path, DataFrame], check: Callable[[Path, DataFrame], None] = lambda _, __: None
) -> None:
    """Write each frame as Parquet beside its place; when all are there, give them their names, in this order.

    A reader never sees half of one. check: sees what was written before; what it raises leaves nothing behind.
    Raises ReportError when the files cannot be written.
    """
    temporaries = {place: place.with_name(place.name + ".tmp") for place in frames}
    try:
        for place, frame in frames.items():
            shutil.rmtree(temporaries[place], ignore_errors=True)
            frame.write.parquet(local(temporaries[place]))
            check(place, frame.sparkSession.read.parquet(local(temporaries[place])))
        for place, temporary in temporaries.items():
            shutil.rmtree(place, ignore_errors=True)
            temporary.rename(place)
    except OSError as refused:
        raise ReportError(f"{refused.filename}: cannot be written ({refused.strerror or refused})") from refused
    finally:
        for temporary in temporaries.values():
            shutil.rmtree(temporary, ignore_errors=True)


def _refuse(written: DataFrame, names: str) -> None:
    found = written.agg(f.count("*").alias("events"), f.collect_set("unknown_version").alias("versions")).collect()[0]
    if not found["events"]:
        raise ReportError(f"{names}: empty; nothing was produced, so there is nothing to judge")
    if found["versions"]:
        versions = ", ".join(map(str, sorted(found["versions"])))
        raise ReportError(f"{names}: {other_version(versions)}")
