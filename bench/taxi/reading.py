"""Files of trip records, whatever their form and generation, become one frame: a row for each record, dirt included."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # it ships no types
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t

from bench.taxi import places
from bench.taxi.columns import Columns, find_columns
from bench.taxi.sources import Source
from report.spark import ReportError

RECORD: Final = "picked_up_us bigint, dropped_off_us bigint, place int, miles double, fare double, trip bigint"
"""Times in µs since 1970-01-01 00:00 on the clocks of New York; null where there is no time. place: see places.py.
trip: a hash, equal for two records of the same trip."""
AMERICAN: Final = "M/d/yyyy h:mm:ss a"
"""How the city's own portal writes times; the files have 2013-01-31 23:59:59."""
TRIMMED: Final = {"header": "true", "ignoreLeadingWhiteSpace": "true", "ignoreTrailingWhiteSpace": "true"}


@dataclass(frozen=True, slots=True)
class Table:
    """A file with its columns called c0, c1, …, and what they say."""

    source: Source
    frame: DataFrame
    columns: Columns


def open_table(spark: SparkSession, source: Source) -> Table:
    """Look at the head of a file, no further. Raises ReportError where it cannot be used."""
    try:
        head = _head(spark, source)
        columns = find_columns(head.names)
    except (PySparkException, Py4JError) as unread:
        raise ReportError(f"{source.path}: cannot be read as {source.form} ({cause(unread)})") from unread
    except ValueError as wrong:
        raise ReportError(f"{source.path}: {wrong}") from wrong
    for place in (columns.picked_up, columns.dropped_off):
        if not isinstance(head[place].dataType, t.StringType | t.TimestampType):
            raise ReportError(
                f"{source.path}: column {head[place].name} is {head[place].dataType.simpleString()}; "
                "must be a time, or text"
            )
    if source.form == "csv":
        text = t.StructType([t.StructField(f"c{place}", t.StringType()) for place in range(len(head))])
        return Table(source, spark.read.schema(text).options(**TRIMMED).csv(source.path), columns)
    used = spark.read.schema(t.StructType([head[place] for place in columns.used])).parquet(source.path)
    return Table(source, used.toDF(*(f"c{place}" for place in columns.used)), columns)


def _head(spark: SparkSession, source: Source) -> t.StructType:
    """Return the columns of a file. Times without a zone are read as if they were UTC, which costs nothing."""
    if source.form == "csv":
        head = spark.read.options(**TRIMMED).csv(source.path).schema
    else:
        head = spark.read.parquet(source.path).schema
    if not head:
        raise ValueError("is empty")
    return t.StructType(
        [
            t.StructField(
                field.name, t.TimestampType() if isinstance(field.dataType, t.TimestampNTZType) else field.dataType
            )
            for field in head
        ]
    )


def kind_of(tables: Sequence[Table]) -> places.Kind:
    """Return how all the files say where a trip began. Raises ReportError where they do not, or not alike."""
    kinds: dict[places.Kind, str] = {}
    for table in tables:
        if table.columns.zone is not None:
            kinds.setdefault("zone", table.source.path)
        elif table.columns.coordinates is not None:
            kinds.setdefault("cell", table.source.path)
        else:
            raise ReportError(f"{table.source.path}: has neither zone nor coordinates of the pick-up; use --by uniform")
    if len(kinds) > 1:
        raise ReportError(
            f"{kinds['zone']} has zones and {kinds['cell']} coordinates, whose keys differ; "
            "make a trace of each, or use --by uniform"
        )
    return next(iter(kinds))


def records(table: Table) -> DataFrame:
    """Return RECORD for each row of the file."""
    columns, frame = table.columns, table.frame
    picked_up, dropped_off = (_micros(frame, place) for place in (columns.picked_up, columns.dropped_off))
    return frame.select(
        picked_up.alias("picked_up_us"),
        dropped_off.alias("dropped_off_us"),
        _place(columns).alias("place"),
        _number(columns.distance).alias("miles"),
        _number(columns.fare).alias("fare"),
        f.xxhash64(picked_up, dropped_off, *(_never_null(frame, place) for place in columns.alike)).alias("trip"),
    )


def _micros(frame: DataFrame, place: int) -> Column:
    """Return a time in µs; null for what is no time. Text must have date and time: Spark would take "2013" for one."""
    column = f.col(f"c{place}")
    if isinstance(frame.schema[f"c{place}"].dataType, t.TimestampType):
        return f.unix_micros(column)
    whole = f.when(
        (f.length(column) >= len("2013-01-01 00:00")) & (f.substr(column, f.lit(5), f.lit(1)) == "-"), column
    )
    return f.unix_micros(f.coalesce(whole.try_cast("timestamp"), f.try_to_timestamp(column, f.lit(AMERICAN))))


def _place(columns: Columns) -> Column:
    """Return the number of the place where a trip began."""
    if columns.zone is not None:
        zone = f.col(f"c{columns.zone}").try_cast("double").try_cast("int")
        return f.when(zone.between(1, places.ZONES), zone).otherwise(places.UNKNOWN_ZONE)
    if columns.coordinates is None:
        return f.lit(None).cast("int")
    east, north = (
        f.floor(f.col(f"c{place}").try_cast("double") * places.CELLS_PER_DEGREE) for place in columns.coordinates
    )
    inside = east.between(places.WEST, places.EAST - 1) & north.between(places.SOUTH, places.NORTH - 1)
    cell = (east - places.WEST) + places.COLUMNS * (north - places.SOUTH)
    return f.when(inside, cell).otherwise(places.OUTSIDE).cast("int")


def _number(place: int | None) -> Column:
    return f.lit(None).cast("double") if place is None else f.col(f"c{place}").try_cast("double")


def _never_null(frame: DataFrame, place: int) -> Column:
    """Nulls would leave no mark in a hash, so that (1, null) and (null, 1) were alike."""
    column = f.col(f"c{place}")
    missing = f.lit("") if isinstance(frame.schema[f"c{place}"].dataType, t.StringType) else f.lit(-1)
    return f.coalesce(column, missing)


def cause(failed: Exception) -> str:
    """Return what Spark says went wrong, in one line: the last cause, or the first line."""
    lines = [line.strip() for line in str(failed).splitlines() if line.strip()]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by:")]
    return (causes[-1] if causes else lines[0] if lines else type(failed).__name__)[:300]
