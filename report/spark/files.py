"""Events and journals from files, wherever Hadoop finds them: Parquet or JSON lines → rows in the report's columns."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # it ships no types
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t

from contracts.events import SCHEMA_VERSION
from contracts.journal import JournalEntry
from report import ReportError
from report.spark import cause
from report.spark.events import EVENT
from report.stored import ASKED, COLUMN_OF, COUNTED, CUSTOMER, EVERY, LETTERS, journal_entries, lacks

NEEDED: Final = ("event_id", "intended_us", "done_us")
"""Columns without which there can be no report."""
NEVER_NULL: Final = NEEDED[:2]
VERSION: Final = "unknown_version"
ALSO: Final = (CUSTOMER, VERSION)
"""Columns that only files made here have."""
CSV: Final = (".csv", ".csv.gz", ".csv.bz2", ".tsv")
LINES: Final = (".json", ".jsonl", ".ndjson", ".gz", ".bz2")
"""Ends of the names of JSON lines; Parquet that is packed still ends in `.parquet`."""
BEING_WRITTEN: Final = "_temporary"
REFUSED: Final = (Py4JJavaError, PySparkException)
"""PySpark gives some exceptions of Java a class of its own."""
NO_FILE_SYSTEM: Final = ("ClassNotFoundException", "UnsupportedFileSystemException", "NoClassDefFoundError")
S3: Final = ("s3", "s3n")
JARS: Final = {"s3a": "org.apache.hadoop:hadoop-aws:{hadoop} and the AWS SDK bundle that it names"}


@dataclass(frozen=True, slots=True)
class Files:
    """Paths of a run's events and of its journal (None: `journal.parquet` beside the events, if it is there)."""

    events: str
    journal: str | None = None


@dataclass(frozen=True, slots=True)
class Events:
    """Event rows in the columns of `EVENT`, and what of these is known and not filled in."""

    rows: DataFrame
    known: frozenset[str] = EVERY
    """Of these columns."""


def read_events(spark: SparkSession, place: str) -> Events:
    """Return the event rows at `place`, which need the columns of `NEEDED`; the others are filled in.

    Raises ReportError when columns are missing or of another type, rows have no id or no intended time, or are of
    another schema version.
    """
    if are_lines(spark, place):
        return _looked_at(spark.read.schema(_columns()).option("mode", "FAILFAST").json(place))
    found = spark.read.parquet(place)
    if missing := sorted(set(NEEDED) - set(found.columns)):
        raise ReportError(lacks(missing))
    return _looked_at(_typed(found))


def read_journal(spark: SparkSession, place: str) -> list[JournalEntry]:
    """Return the entries of the journal at `place`. Raises ReportError for what is no entry, or of another version.

    Parquet has the columns position and entry (as JSON); of JSON lines each is an entry, in the order of the files.
    """
    if are_lines(spark, place):
        at = f.monotonically_increasing_id().alias("at")
        lines = spark.read.text(place).select("_metadata.file_path", at, "value").orderBy("file_path", "at")
        return journal_entries([(number, row["value"]) for number, row in enumerate(lines.collect())])
    found = spark.read.parquet(place)
    if missing := sorted({"position", "entry"} - set(found.columns)):
        raise ReportError(lacks(missing))
    return journal_entries(sorted((row["position"], row["entry"]) for row in found.collect()))


def _columns() -> t.StructType:
    return t.StructType.fromDDL(f"{EVENT}, {CUSTOMER} long, {VERSION} int")


def _typed(found: DataFrame) -> DataFrame:
    """Return the columns that a report reads, whole numbers as wide as it has them."""
    wanted = {field.name: field.dataType for field in _columns().fields}
    fields = [field for field in found.schema.fields if field.name in wanted]
    if wrong := [
        f"{field.name} is {field.dataType.simpleString()} where {wanted[field.name].simpleString()} should be"
        for field in fields
        if not _fits(field.dataType, wanted[field.name])
    ]:
        raise ReportError(f"{', '.join(wrong)} (times are whole microseconds since 1970)")
    return found.select(*[f.col(field.name).cast(wanted[field.name]).alias(field.name) for field in fields])


def _fits(found: t.DataType, wanted: t.DataType) -> bool:
    both_whole = isinstance(found, t.IntegralType) and isinstance(wanted, t.IntegralType)
    return both_whole or isinstance(found, t.NullType) or found == wanted


def _looked_at(found: DataFrame) -> Events:
    also = [name for name in ALSO if name in found.columns]
    counts = found.agg(
        f.count("*").alias("rows"),
        *[f.count(name).alias(name) for name in {*NEVER_NULL, *EVERY, *also} & set(found.columns)],
        *[f.max(name).alias("version") for name in also if name == VERSION],
    ).collect()[0]
    if missing := [name for name in NEVER_NULL if not counts[name]]:
        raise ReportError(lacks(missing) if counts["rows"] else "there is no event, so there is nothing to report on")
    if short := [name for name in NEVER_NULL if counts[name] < counts["rows"]]:
        raise ReportError(f"{counts['rows'] - counts[short[0]]:,} of {counts['rows']:,} rows have no {short[0]}")
    if VERSION in also and counts["version"] is not None:
        raise ReportError(other_version(str(counts["version"])))
    return Events(
        _filled(found.drop(*[name for name in also if not counts[name]])),  # without customers where none is known
        frozenset(name for name in EVERY & set(found.columns) if counts[name]),
    )


def _filled(found: DataFrame) -> DataFrame:
    """Return `found` with every column of `EVENT`: an event asked for once, and settled once if it was done."""
    done = f.col("done_us").isNotNull().cast("long")
    known = {f"{prefix}_differ": f.expr("false") for prefix in COLUMN_OF.values()}
    known |= {f"{prefix}_records": f.expr("0L") for prefix in COLUMN_OF.values()}
    known |= {LETTERS: f.expr("0L"), ASKED: f.expr("1L"), COUNTED: done}
    columns = []
    for field in _columns().fields[: -len(ALSO)]:
        column = f.col(field.name) if field.name in found.columns else f.lit(None).cast(field.dataType)
        column = f.coalesce(column, known[field.name]) if field.name in known else column
        columns.append(column.alias(field.name))
    return found.select(*columns, *[name for name in ALSO if name in found.columns])


def other_version(versions: str) -> str:
    """Return what is said of records of schema `versions`, which are not ours."""
    way = f"this report reads {SCHEMA_VERSION} only, so read each part with the release that wrote it"
    return f"records of schema version {versions} beside {SCHEMA_VERSION}; {way}"


def local(place: Path) -> str:
    """Return the path by which Hadoop finds a file of this machine, whatever its own file system is."""
    return f"file://{place.resolve()}"


def are_lines(spark: SparkSession, place: str) -> bool:
    """Return whether JSON lines lie at `place`, a file, a folder or a pattern; else it is Parquet.

    The name of the first file tells. Raises ReportError where there is none, none can be read, or it is CSV.
    """
    with _in_words(spark, place):
        name = _first_file(spark, place).lower()
    if name.endswith(CSV):
        raise ReportError("it is CSV, which has no types; a report reads Parquet or JSON lines, so write one of these")
    return name.endswith(LINES)


def beside(spark: SparkSession, place: str, name: str) -> str | None:
    """Return the path of `name` in the folder of `place`; None where it is not there."""
    with _in_words(spark, place):
        folder, _ = _found(spark, place)
        if folder.getParent() is None:
            return None
        wanted, system = _found(spark, f"{folder.getParent().toString().rstrip('/')}/{name}")
        return str(wanted.toString()) if system.exists(wanted) else None


def _first_file(spark: SparkSession, place: str) -> str:
    path, system = _found(spark, place)
    found = system.globStatus(path)
    if not found:
        raise ReportError("no such file or folder")
    first = found[0]
    while first.isDirectory():
        inside = {one.getPath().getName(): one for one in system.listStatus(first.getPath())}
        if BEING_WRITTEN in inside:
            raise ReportError(f"it is not whole: {BEING_WRITTEN} is there, so somebody writes it, or did not finish")
        shown = sorted(name for name in inside if not name.startswith(("_", ".")))
        if not shown:
            raise ReportError("the folder holds no file")
        first = inside[shown[0]]
    return str(first.getPath().getName())


def _found(spark: SparkSession, place: str) -> tuple[Any, Any]:
    """Return Hadoop's path of `place`, and the file system in which that lies."""
    try:
        path = spark.sparkContext._jvm.org.apache.hadoop.fs.Path(place)
    except REFUSED as refused:
        raise ReportError(f"not a path ({cause(refused)})") from refused
    return path, path.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())


@contextmanager
def _in_words(spark: SparkSession, place: str) -> Iterator[None]:
    try:
        yield
    except REFUSED as refused:
        scheme, said = place.partition("://")[0], f"cannot be read ({cause(refused)})"
        if any(name in str(refused) for name in NO_FILE_SYSTEM):
            hadoop = spark.sparkContext._jvm.org.apache.hadoop.util.VersionInfo.getVersion()
            jars = JARS.get(scheme, f"the jar of its file system for Hadoop {hadoop}").format(hadoop=hadoop)
            said = f"Spark has no file system for {scheme}:// here; add it with --jars ({jars})"
            said = f"Hadoop calls this scheme s3a: name it s3a{place[len(scheme) :]}" if scheme in S3 else said
        raise ReportError(said) from refused
