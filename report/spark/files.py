"""Events and journals from files, wherever Hadoop finds them: Parquet or JSON lines → rows in the report's columns."""

from dataclasses import dataclass
from typing import Final

import msgspec
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t

from contracts.events import SCHEMA_VERSION
from contracts.journal import JOURNAL_VERSION, JournalEntry
from contracts.topics import Topic
from report.spark.errors import ReportError
from report.spark.footer import known_columns
from report.spark.hadoop import are_lines
from report.spark.integrity import CUSTOMER
from report.spark.schema import COLUMN_OF, EVENT

NEEDED: Final = ("event_id", "intended_us", "done_us")
"""Columns without which nothing can be judged."""
NEVER_NULL: Final = NEEDED[:2]
VERSION: Final = "unknown_version"
ALSO: Final = t.StructType([t.StructField(CUSTOMER, t.LongType()), t.StructField(VERSION, t.IntegerType())])
"""Columns that only files made here have."""


@dataclass(frozen=True, slots=True)
class Files:
    """Paths of a run's events and of its journal (None: `journal.parquet` beside the events, if it is there)."""

    events: str
    journal: str | None = None


def read_events(spark: SparkSession, place: str, *, ours: bool) -> DataFrame:
    """Return the event rows at `place`, in the columns of `EVENT`.

    ours: Parquet that this job wrote, which has every column, and no value has to be looked at. Elsewhere the columns
    of `NEEDED` do, and the others are filled in. Raises ReportError when columns are missing or of another type, rows
    have no id or no intended time, or are of another schema version.
    """
    if are_lines(spark, place):
        columns = t.StructType([*EVENT.fields, *ALSO.fields])
        return _filled(_looked_at(spark.read.schema(columns).option("mode", "FAILFAST").json(place)))
    found = _parquet(spark, place) if ours else spark.read.parquet(place)
    if missing := sorted(set(EVENT.names if ours else NEEDED) - set(found.columns)):
        raise ReportError(_lacks(missing))
    return _typed(found) if ours else _filled(_looked_at(_typed(found)))


def read_journal(spark: SparkSession, place: str) -> list[JournalEntry]:
    """Return the entries of the journal at `place`. Raises ReportError for what is no entry, or of another version.

    Parquet has the columns position and entry (as JSON); of JSON lines each is an entry, in the order of the files.
    """
    if are_lines(spark, place):
        lines = spark.read.text(place).select(
            "_metadata.file_path", f.monotonically_increasing_id().alias("at"), "value"
        )
        rows = [(number, row["value"]) for number, row in enumerate(lines.orderBy("file_path", "at").collect())]
    else:
        found = _parquet(spark, place)
        if missing := sorted({"position", "entry"} - set(found.columns)):
            raise ReportError(_lacks(missing))
        rows = [(row["position"], row["entry"]) for row in found.collect()]
        rows.sort()  # here: for Spark it would be two more jobs
    decoder: msgspec.json.Decoder[JournalEntry] = msgspec.json.Decoder(JournalEntry)
    return [_entry(decoder, position, text) for position, text in rows]


def _parquet(spark: SparkSession, place: str) -> DataFrame:
    known = known_columns(place)
    return spark.read.schema(known).parquet(place) if known else spark.read.parquet(place)


def _entry(decoder: "msgspec.json.Decoder[JournalEntry]", position: int, text: str) -> JournalEntry:
    try:
        entry = decoder.decode(text)
    except msgspec.DecodeError as broken:
        raise ReportError(f"entry {position} is not a journal entry ({broken})") from broken
    if entry.v != JOURNAL_VERSION:
        raise ReportError(f"entry {position} has version {entry.v}, this report reads {JOURNAL_VERSION}")
    return entry


def _typed(found: DataFrame) -> DataFrame:
    """Return the columns that a report reads, whole numbers as wide as it has them."""
    wanted = {field.name: field.dataType for field in (*EVENT.fields, *ALSO.fields)}
    fields = [field for field in found.schema.fields if field.name in wanted]
    others = [field for field in fields if field.dataType != wanted[field.name]]
    if wrong := [field for field in others if not _fits(field.dataType, wanted[field.name])]:
        said = ", ".join(
            f"{field.name} is {field.dataType.simpleString()} where {wanted[field.name].simpleString()} should be"
            for field in wrong
        )
        raise ReportError(f"{said} (times are whole microseconds since 1970)")
    if not others:
        return found
    return found.select(*[f.col(field.name).cast(wanted[field.name]).alias(field.name) for field in fields])


def _fits(found: t.DataType, wanted: t.DataType) -> bool:
    both_whole = isinstance(found, t.IntegralType) and isinstance(wanted, t.IntegralType)
    return both_whole or isinstance(found, t.NullType)


def _looked_at(found: DataFrame) -> DataFrame:
    """Return `found` if each row is an event of our version; without customers where none is known."""
    also = [name for name in ALSO.names if name in found.columns]
    counts = found.agg(
        f.count("*").alias("rows"),
        *[f.count(name).alias(name) for name in (*NEVER_NULL, *also)],
        *[f.max(name).alias("version") for name in also if name == VERSION],
    ).collect()[0]
    if missing := [name for name in NEVER_NULL if not counts[name]]:
        raise ReportError(_lacks(missing) if counts["rows"] else "there is no event, so there is nothing to judge")
    if short := [name for name in NEVER_NULL if counts[name] < counts["rows"]]:
        raise ReportError(f"{counts['rows'] - counts[short[0]]:,} of {counts['rows']:,} rows have no {short[0]}")
    if VERSION in also and counts["version"] is not None:
        raise ReportError(other_version(str(counts["version"])))
    return found.drop(*[name for name in also if not counts[name]])


def _filled(found: DataFrame) -> DataFrame:
    """Return `found` with every column of `EVENT`: an event asked for once, and settled once if it was done."""
    done = f.col("done_us").isNotNull().cast("long")
    known = {f"{prefix}_differ": f.expr("false") for prefix in COLUMN_OF.values()}
    known |= {f"{prefix}_records": f.expr("0L") for prefix in COLUMN_OF.values()}
    known |= {"dead_letters": f.expr("0L")}
    known |= {
        f"{COLUMN_OF[Topic.PAYMENTS_REQUESTED]}_records": f.expr("1L"),
        f"{COLUMN_OF[Topic.PAYMENTS_SETTLED]}_records": done,
    }
    columns = []
    for field in EVENT.fields:
        column = f.col(field.name) if field.name in found.columns else f.lit(None).cast(field.dataType)
        column = f.coalesce(column, known[field.name]) if field.name in known else column
        columns.append(column.alias(field.name))
    return found.select(*columns, *[name for name in ALSO.names if name in found.columns])


def _lacks(missing: list[str]) -> str:
    return f"it lacks {', '.join(missing)}; is it the file of another program?"


def other_version(versions: str) -> str:
    """Return what is said of records of schema `versions`, which are not ours."""
    return (
        f"records of schema version {versions} beside {SCHEMA_VERSION}; this report reads "
        f"{SCHEMA_VERSION} only, so read each part with the release that wrote it"
    )
