"""Files of trip records, whatever their form, become one frame: a row for each record, dirt named."""

import re
from calendar import monthrange
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Final

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # it ships no types
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t

from report.spark import ReportError, cause

FORMS: Final = (".parquet", ".csv", ".csv.gz", ".csv.bz2")
PICKED_UP: Final = ("tpeppickupdatetime", "lpeppickupdatetime", "trippickupdatetime", "pickupdatetime")
DROPPED_OFF: Final = ("tpepdropoffdatetime", "lpepdropoffdatetime", "tripdropoffdatetime", "dropoffdatetime")
ZONE: Final = "pulocationid"
ALIKE: Final = (
    "vendorid", "vendorname", "hvfhslicensenum", "passengercount", "tripdistance", ZONE, "dolocationid",
    "pickuplongitude", "startlon", "pickuplatitude", "startlat", "dropofflongitude", "endlon",
    "dropofflatitude", "endlat",
)  # fmt: skip
"""What tells two trips apart, besides their times. Source of all names: the TLC's data dictionaries, from 2009 on."""
UNKNOWN_ZONE: Final = 264
"""The TLC numbers its zones from 1; 264 is "unknown", 265 "outside of New York". What is none of them counts as 264."""
ZONES: Final = 265
AMERICAN: Final = "M/d/yyyy h:mm:ss a"
"""How the city's own portal writes times; the files have 2013-01-31 23:59:59."""
SECOND_US: Final = 1_000_000
TRIMMED: Final = {"header": "true", "ignoreLeadingWhiteSpace": "true", "ignoreTrailingWhiteSpace": "true"}
_NAMED: Final = re.compile(r"(?<!\d)(\d{4})-(\d{2})(?!\d)")


@dataclass(frozen=True, slots=True, order=True)
class Month:
    """A month on the clocks of New York. They are taken as they are: no time zone, no summer time."""

    year: int
    number: int

    @property
    def began_s(self) -> int:
        """Its first second, in seconds since 1970-01-01 00:00 on the same clocks."""
        return int(datetime(self.year, self.number, 1, tzinfo=UTC).timestamp())

    @property
    def ended_s(self) -> int:
        """First second after it."""
        return self.began_s + 86_400 * monthrange(self.year, self.number)[1]

    @property
    def following(self) -> "Month":
        """The month after it."""
        return Month(self.year + self.number // 12, self.number % 12 + 1)

    def __str__(self) -> str:
        return f"{self.year:04d}-{self.number:02d}"


def parse_month(text: str) -> Month:
    """Read YYYY-MM. Raises ValueError."""
    found = _NAMED.fullmatch(text.strip())
    if not found or not 1 <= int(found[2]) <= 12 or int(found[1]) < 1970:
        raise ValueError(f"{text!r} is no month; write YYYY-MM")
    return Month(int(found[1]), int(found[2]))


def files_of(paths: Sequence[str], month: Month | None) -> dict[str, Month]:
    """Return file → its month, in order of time; a folder stands for the files of known form in it.

    month: of all of them, instead of what their names end with. Raises ReportError.
    """
    found: dict[str, Month] = {}
    for file in (file for path in paths for file in _inside(path)):
        if not file.lower().endswith(FORMS):
            raise ReportError(f"{file}: ends in none of {', '.join(FORMS)}, so its form is not known")
        named = _NAMED.findall(file.rpartition("/")[2])
        if month is None and not named:
            raise ReportError(f"{file}: its name says no month; name it with --month YYYY-MM")
        try:
            found[file] = month or parse_month("-".join(named[-1]))
        except ValueError as wrong:
            raise ReportError(f"{file}: {wrong}") from wrong
    months = sorted(found.values())
    for one, later in pairwise(months):
        if later not in {one, one.following}:
            raise ReportError(f"{one} and {later} are there, {one.following} is missing; a trace has no gap")
    return dict(sorted(found.items(), key=lambda file: file[1]))


def read_trips(spark: SparkSession, file: str, month: Month, *, by_zone: bool) -> DataFrame:
    """Return picked_up_us, dropped_off_us, zone, trip, broken for each record of a file.

    Times are µs since 1970-01-01 00:00 on the clocks of New York. trip: a hash, equal for two records of the same trip.
    broken: the first rule that a record breaks; null where it breaks none. Only the head of the file is looked at here.
    Raises ReportError where the file cannot be used.
    """
    form = "csv" if ".csv" in file.lower() else "parquet"
    try:
        head = spark.read.options(**TRIMMED).csv(file) if form == "csv" else spark.read.parquet(file)
        plain = ["".join(letter for letter in name.lower() if letter.isalnum()) for name in head.columns]
    except (PySparkException, Py4JError) as unread:
        raise ReportError(f"{file}: cannot be read as {form} ({cause(unread)})") from unread
    if not plain:
        raise ReportError(f"{file}: is empty")
    rows = head.toDF(*(f"{name}_{place}" for place, name in enumerate(plain)))
    columns = {name: f"{name}_{place}" for place, name in reversed([*enumerate(plain)])}
    picked_up, dropped_off = (
        _micros(file, rows, columns, known, what)
        for known, what in ((PICKED_UP, "pick-up time"), (DROPPED_OFF, "drop-off time"))
    )
    if by_zone and ZONE not in columns:
        raise ReportError(f"{file}: has no zone of the pick-up (PULocationID); use --by uniform")
    zone = f.col(columns[ZONE]).try_cast("double").try_cast("int") if by_zone else f.lit(None).cast("int")
    alike = [f.coalesce(f.col(columns[name]).cast("string"), f.lit("")) for name in ALIKE if name in columns]
    in_month = (picked_up >= month.began_s * SECOND_US) & (picked_up < month.ended_s * SECOND_US)
    broken = (
        f.when(picked_up.isNull() | dropped_off.isNull(), "unreadable")
        .when(~in_month, "other_month")
        .when(dropped_off < picked_up, "backwards")
    )
    return rows.select(
        picked_up.alias("picked_up_us"),
        dropped_off.alias("dropped_off_us"),
        f.when(zone.between(1, ZONES), zone).otherwise(UNKNOWN_ZONE).alias("zone"),
        f.xxhash64(picked_up, dropped_off, *alike).alias("trip"),
        broken.alias("broken"),
    )


def _inside(path: str) -> list[str]:
    if "://" in path:
        return [path]
    place = Path(path)
    if not place.exists():
        raise ReportError(f"{path}: is not there")
    if not place.is_dir():
        return [str(place.resolve())]
    inside = sorted(str(one.resolve()) for one in place.iterdir() if one.name.lower().endswith(FORMS))
    if not inside:
        raise ReportError(f"{path}: holds no file that ends in {', '.join(FORMS)}")
    return inside


def _micros(file: str, rows: DataFrame, columns: dict[str, str], known: Sequence[str], what: str) -> Column:
    """Return a time in µs; null for what is no time. Text must have date and time: Spark would take "2013" for one."""
    name = next((columns[name] for name in known if name in columns), None)
    if name is None:
        raise ReportError(f"{file}: has no column for {what} ({known[0]}); its columns are {', '.join(columns)[:60]}")
    column, kind = f.col(name), rows.schema[name].dataType
    if isinstance(kind, t.TimestampType | t.TimestampNTZType):
        return f.unix_micros(column.cast("timestamp"))
    if not isinstance(kind, t.StringType):
        raise ReportError(f"{file}: column {name} is {kind.simpleString()}; must be a time, or text")
    dashed = f.substr(column, f.lit(5), f.lit(1)) == "-"
    whole = f.when((f.length(column) >= len("2013-01-01 00:00")) & dashed, column)
    return f.unix_micros(f.coalesce(whole.try_cast("timestamp"), f.try_to_timestamp(column, f.lit(AMERICAN))))
