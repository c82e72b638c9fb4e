"""Where a run's events and its journal are read from: its topics, the files in its folder, or files elsewhere."""

import math
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from contracts.journal import JournalEntry
from contracts.topics import Topic, qualified
from report.run_info import EVENTS, JOURNAL, RUN_FILE, RunInfo
from report.spark import ReportError
from report.spark.events import COLUMN_OF, event_rows, journal_entries, refused_records, typed_records
from report.spark.files import Events, Files, beside, local, other_version, read_events, read_journal
from report.spark.kafka import read_topics

WHOLE: Final = "_SUCCESS"
"""File that Spark adds to a Parquet folder last."""
EARLIEST_US: Final = 946_684_800_000_000
"""The year 2000: what was intended before has another unit, or another clock."""
LONGEST_DAYS: Final = 40
"""A series has an entry for each second."""


@dataclass(frozen=True, slots=True)
class Promise:
    """What was promised of events of which no run.json tells it."""

    latency_target_s: float
    percentile: float
    """The share that is to be done within it."""


@dataclass(frozen=True, slots=True)
class RunTopics:
    """Names on the broker of what a report reads; None for what is not there."""

    events: Mapping[str, Topic]
    dead_letters: str | None = None
    journal: str | None = None


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


def unknown_run(name: str, source: str, promise: Promise) -> RunInfo:
    """Return the description of a run that nobody described. Raises ReportError for a promise that is none."""
    target_s, share = promise.latency_target_s, promise.percentile
    if not (0 < target_s < math.inf and 0 < share <= 1):
        raise ReportError(
            f"{share:g} within {target_s:g} s was never promised: a latency target is more than 0 seconds, "
            "a percentile a share of 1, as 0.999"
        )
    return RunInfo(
        run=name,
        scenario={"name": source},
        policy="unknown",
        seed=0,
        topology="payment-only",
        world="unknown",
        bootstrap_servers="",
        client_properties="",
        payment_partitions=0,
        latency_target_s=target_s,
        percentile=share,
        duration_s=0.0,
    )


def bounded(run: RunInfo, events: DataFrame, *, now_us: int) -> RunInfo:
    """Give `run` the start (whole second) and the duration that its events have; those of the future aside.

    Raises ReportError when no event has a time that can be, or they lie too far apart.
    """
    can_be = f.when(f.col("intended_us").between(EARLIEST_US, now_us), f.col("intended_us"))
    first_us, last_us = events.agg(f.min(can_be), f.max(can_be)).collect()[0]
    if first_us is None:
        raise ReportError("no event was intended between 2000 and now; are its times microseconds since 1970, UTC?")
    started_us = first_us // 1_000_000 * 1_000_000
    duration_s = (last_us - started_us) // 1_000_000 + 1
    if duration_s > LONGEST_DAYS * 86_400:
        raise ReportError(
            f"its events lie {duration_s / 86_400:,.0f} days apart; a report is of {LONGEST_DAYS} at most"
        )
    return msgspec.structs.replace(run, started_us=started_us, duration_s=float(duration_s))


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


def events_in(spark: SparkSession, folder: Path) -> Events:
    """Return the run's event rows. Raises ReportError as `read_events` does."""
    try:
        return read_events(spark, local(folder / EVENTS), ours=True)
    except ReportError as refused:
        raise ReportError(f"{EVENTS}: {refused}") from refused


def journal_of(spark: SparkSession, folder: Path, files: Files | None = None) -> list[JournalEntry]:
    """Return the entries of the journal that `files` name, else of that beside them, else of that in `folder`.

    None where the run wrote none. Raises ReportError as `read_journal` does.
    """
    own = local(folder / JOURNAL) if is_whole(folder / JOURNAL) else None
    place = (files.journal or beside(spark, files.events, JOURNAL) or own) if files else own
    if place is None:
        return []
    try:
        return read_journal(spark, place)
    except ReportError as refused:
        raise ReportError(f"its journal {place}: {refused}" if files else f"{JOURNAL}: {refused}") from refused


def is_whole(place: Path) -> bool:
    """Return whether `place` is a Parquet file, or a folder that Spark finished."""
    return place.is_file() or (place / WHOLE).exists()


def _refuse(written: DataFrame, names: str) -> None:
    found = written.agg(f.count("*").alias("events"), f.collect_set("unknown_version").alias("versions")).collect()[0]
    if not found["events"]:
        raise ReportError(f"{names}: empty; nothing was produced, so there is nothing to report on")
    if found["versions"]:
        versions = ", ".join(map(str, sorted(found["versions"])))
        raise ReportError(f"{names}: {other_version(versions)}")
