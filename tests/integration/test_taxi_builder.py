"""docs/examples/taxi.py turns trip records into a trace: every row is in it, or counted under a rule."""

import gzip
from collections.abc import Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from spark_helpers import SPARK, spark

from loadgen.trace import read_trace

pytestmark = [*SPARK, pytest.mark.long]
HEADER = "vendor_id, pickup_datetime, dropoff_datetime, passenger_count, trip_distance"
HOUR = ("--month", "2013-01", "--speed", "60", "--duration-s", "60")
"""The first hour of the month in a minute."""


@pytest.fixture(scope="module", autouse=True)
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    yield from spark(tmp_path_factory.mktemp("spark"))


def trace_of(file: Path, *options: str) -> tuple[np.ndarray, dict[str, Any]]:
    spec = spec_from_file_location("taxi", Path(__file__).parents[2] / "docs" / "examples" / "taxi.py")
    assert spec
    assert spec.loader
    taxi = module_from_spec(spec)
    spec.loader.exec_module(taxi)
    outcome = taxi.main([str(file), "--out", str(file.parent / "trace.csv"), *HOUR, *options])
    counts = read_trace(file.parent / "trace.csv").counts
    return counts.reshape(len(counts), -1), outcome


def trip(picked_up: str, dropped_off: str, miles: str = "1.5") -> str:
    return f"VTS,{picked_up},{dropped_off},1,{miles}"


def test_each_trip_is_an_event_at_both_ends_and_bad_rows_are_counted(tmp_path: Path) -> None:
    rows = [
        trip("2013-01-01 00:00:00", "2013-01-01 00:10:59"),  # seconds 0 and 10
        trip("2013-01-01 00:00:59-05:00", "2013-01-01 00:01:00Z"),  # seconds 0 and 1
        trip("2013-01-01 00:00:59", "2013-01-01 00:01:00"),  # the same again
        trip("2013-01-01 00:00:59", "2013-01-01 00:01:00", miles="1.6"),  # another one
        trip("1/1/2013 12:30:00 AM", "2013-01-01 01:30:00"),  # second 30; ends after the trace
        trip("", "2013-01-01 00:10:00"),
        trip("2013", "2013-01-01 00:10:00"),
        trip("2013-01-41 00:10:00", "2013-01-01 00:10:00"),
        trip("2012-12-31 23:59:59", "2013-01-01 00:10:00"),
        trip("2013-02-01 00:00:00", "2013-02-01 00:10:00"),
        trip("2013-01-01 00:10:00", "2013-01-01 00:09:59"),
        "VTS",
    ]
    file = tmp_path / "trips.csv.gz"
    file.write_bytes(gzip.compress("\r\n".join([HEADER, "", *rows, ""]).encode()))

    counts, outcome = trace_of(file)

    assert {second: int(n) for second, n in enumerate(counts[:, 0]) if n} == {0: 3, 1: 2, 10: 1, 30: 1}
    assert outcome["dropped"] == {"unreadable": 4, "other_month": 2, "backwards": 1, "duplicate": 1}
    assert (outcome["rows"], outcome["trips"], outcome["events"], outcome["outside"]) == (12, 4, 7, 1)


def test_times_in_nanoseconds_are_read(tmp_path: Path) -> None:
    times = pa.array([1_356_998_400 * 10**9], pa.timestamp("ns"))
    parquet.write_table(pa.table({"pickup_datetime": times, "dropoff_datetime": times}), tmp_path / "trips.parquet")
    assert trace_of(tmp_path / "trips.parquet")[1]["trips"] == 1
