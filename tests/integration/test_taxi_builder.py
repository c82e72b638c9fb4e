"""Trip records become a trace: every row is in it, or counted under the rule that keeps it out."""

import gzip
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from spark_helpers import SPARK, spark

from bench.taxi.trace import Outcome, Request, build, partitions_of_zones
from bench.taxi.trips import Month
from loadgen.trace import read_trace
from report.spark import ReportError

pytestmark = [*SPARK, pytest.mark.long]

JANUARY = Month(2013, 1)
OLD = "vendor_id, pickup_datetime, dropoff_datetime, passenger_count, trip_distance, pickup_longitude, pickup_latitude"
HOUR = Request(speed=Fraction(60), duration_s=60)
"""The first hour of the month in a minute."""


@pytest.fixture(scope="module", autouse=True)
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    yield from spark(tmp_path_factory.mktemp("spark"))


def trace_of(folder: Path, request: Request, *files: Path) -> tuple[np.ndarray, Outcome]:
    """Build, and read back what was written: shape (seconds, partitions)."""
    outcome = build([str(file) for file in files], folder / "trace.csv", request, "local[2]")
    counts = read_trace(folder / "trace.csv").counts
    return counts.reshape(len(counts), -1), outcome


def csv_file(folder: Path, *rows: str, header: str = OLD, name: str = "yellow_tripdata_2013-01.csv") -> Path:
    (folder / name).write_text("\r\n".join([header, "", *rows, ""]))
    return folder / name


def trip(picked_up: str, dropped_off: str, *, miles: str = "1.5", at: str = "-73.985,40.755") -> str:
    return f"VTS,{picked_up},{dropped_off},1,{miles},{at}"


def test_an_old_file_becomes_events_at_both_ends_of_each_trip_and_its_dirt_is_counted(tmp_path: Path) -> None:
    file = csv_file(
        tmp_path,
        trip("2013-01-01 00:00:00", "2013-01-01 00:10:59"),  # seconds 0 and 10
        trip("2013-01-01 00:00:59", "2013-01-01 00:01:00"),  # seconds 0 and 1
        trip("2013-01-01 00:00:59", "2013-01-01 00:01:00"),  # the same again
        trip("2013-01-01 00:00:59", "2013-01-01 00:01:00", miles="1.6"),  # another one
        trip("2013-01-01 00:30:00", "2013-01-01 01:30:00"),  # second 30; ends after the trace
        trip("", "2013-01-01 00:10:00"),
        trip("2013", "2013-01-01 00:10:00"),
        trip("2013-01-01 00:10:00", "soon"),
        trip("2013-01-41 00:10:00", "2013-01-01 00:10:00"),
        trip("2012-12-31 23:59:59", "2013-01-01 00:10:00"),
        trip("2013-02-01 00:00:00", "2013-02-01 00:10:00"),
        trip("9999-12-31 23:59:59", "9999-12-31 23:59:59"),
        trip("2013-01-01 00:10:00", "2013-01-01 00:09:59"),
        "VTS",
    )

    counts, outcome = trace_of(tmp_path, HOUR, file)

    assert {second: int(n) for second, n in enumerate(counts[:, 0]) if n} == {0: 3, 1: 2, 10: 1, 30: 1}
    assert outcome.dropped == {"unreadable": 5, "other_month": 3, "backwards": 1, "duplicate": 1}
    assert (outcome.rows, outcome.trips, outcome.events, outcome.outside) == (14, 4, 7, 1)
    assert (outcome.duration_s, outcome.largest) == (60, 3)


def test_text_without_seconds_in_other_clothes_and_compressed_is_read(tmp_path: Path) -> None:
    file = tmp_path / "trips.csv.gz"
    lines = ["\ufeffLPEP Pickup DateTime,LPEP Dropoff DateTime", "1/1/2013 12:02:00 AM,1/1/2013 12:03:00 AM"]
    lines.append("2013-01-01T00:02:00,  2013-01-01 00:04  ")
    file.write_bytes(gzip.compress("\n".join(lines).encode()))

    counts, outcome = trace_of(tmp_path, replace(HOUR, month=JANUARY), file)

    assert (counts[2, 0], counts[3, 0], counts[4, 0]) == (2, 1, 1)
    assert outcome.trips == outcome.rows


def zone_trips(zones: list[int | None], times: pa.DataType, name: str = "PULocationID") -> pa.Table:
    begin = int(datetime(2013, 1, 1, tzinfo=UTC).timestamp())
    texts = pa.types.is_string(times)
    start, end = (pa.array([begin + minutes * 60] * len(zones)).cast(pa.timestamp("s")) for minutes in (1, 2))
    columns = {
        "tpep_pickup_datetime": start.cast(pa.string()) if texts else start.cast(times),
        "tpep_dropoff_datetime": end.cast(pa.string()) if texts else end.cast(times),
        name: pa.array(zones),
        "trip_distance": pa.array(range(len(zones)), pa.float64()),
    }
    return pa.table(columns)


@pytest.mark.parametrize(
    "times", [pa.timestamp("us"), pa.timestamp("ms"), pa.timestamp("us", tz="UTC"), pa.string()], ids=str
)
def test_zones_decide_the_partition_and_no_zone_is_the_unknown_one(tmp_path: Path, times: pa.DataType) -> None:
    zones = [1, 132, 132, 265, 264, None, 0, 266, -1]
    pq.write_table(zone_trips(zones, times), tmp_path / "2013-01.parquet")

    counts, outcome = trace_of(tmp_path, replace(HOUR, by="zone", partitions=7), tmp_path / "2013-01.parquet")

    where = partitions_of_zones(7)
    expected = np.bincount([where[zone] for zone in (1, 132, 132, 265, 264, 264, 264, 264, 264)], minlength=7)
    assert np.array_equal(counts[1], expected)
    assert np.array_equal(counts[2], expected)  # the drop-offs, at the place of the pick-up
    assert outcome.hottest_share == expected.max() / 9


def test_what_cannot_be_built_is_one_line_and_leaves_no_file(tmp_path: Path) -> None:
    (tmp_path / "empty_2013-01.csv").touch()
    (tmp_path / "torn_2013-01.parquet").write_bytes(b"PAR1 and then nothing")
    dirty = csv_file(tmp_path, trip("2014-01-01 00:00:00", "2014-01-01 00:01:00"), name="dirty_2013-01.csv")
    wrong = csv_file(tmp_path, "1,2", header="a,b", name="wrong_2013-01.csv")
    pq.write_table(zone_trips([1], pa.timestamp("us"), "tip"), tmp_path / "nowhere_2013-01.parquet")
    numbers = zone_trips([1], pa.timestamp("us")).set_column(0, "tpep_pickup_datetime", pa.array([1]))
    pq.write_table(numbers, tmp_path / "numbers_2013-01.parquet")
    by_zone = replace(HOUR, by="zone", partitions=2)

    for request, files, said in (
        (HOUR, ["empty_2013-01.csv"], "empty_2013-01.csv: is empty"),
        (HOUR, ["torn_2013-01.parquet"], "torn_2013-01.parquet: cannot be read as parquet"),
        (HOUR, [dirty.name], "none of 1 records makes an event of the trace: .*'other_month': 1"),
        (HOUR, [wrong.name], "no column for pick-up time"),
        (HOUR, ["numbers_2013-01.parquet"], "column tpeppickupdatetime_0 is bigint; must be a time, or text"),
        (by_zone, ["nowhere_2013-01.parquet"], "has no zone of the pick-up"),
    ):
        with pytest.raises(ReportError, match=said) as refused:
            trace_of(tmp_path, request, *(tmp_path / name for name in files))
        assert "\n" not in str(refused.value)
    assert not list(tmp_path.glob("*trace*"))
