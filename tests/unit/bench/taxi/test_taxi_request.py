"""Which files make a trace, which month each of them holds, and what no trace can be; all before a JVM starts."""

from fractions import Fraction
from pathlib import Path

import pytest

from bench.taxi.trace import Request, partitions_of_zones
from bench.taxi.trips import Month, files_of
from contracts.validation import InvalidSettingsError
from report.spark import ReportError

JANUARY = Month(2013, 1)


def test_a_folder_stands_for_its_files_in_order_of_their_months(tmp_path: Path) -> None:
    for name in ("yellow_2013-02.csv.gz", "yellow_2012-12.parquet", "green_2013-01.CSV", "notes.txt"):
        (tmp_path / name).touch()
    found = files_of([str(tmp_path)], None)
    assert [Path(file).name for file in found] == [
        "yellow_2012-12.parquet",
        "green_2013-01.CSV",
        "yellow_2013-02.csv.gz",
    ]
    assert list(found.values()) == [Month(2012, 12), JANUARY, Month(2013, 2)]
    assert set(files_of([str(tmp_path)], JANUARY).values()) == {JANUARY}


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["2013-01.csv", "2013-03.csv"], "2013-01 and 2013-03 are there, 2013-02 is missing"),
        (["trips.csv"], "its name says no month"),
        (["2013-01.txt"], "ends in none of"),
        (["2013-13.csv"], "'2013-13' is no month"),
    ],
)
def test_files_that_make_no_trace_are_refused(tmp_path: Path, names: list[str], said: str) -> None:
    for name in names:
        (tmp_path / name).touch()
    with pytest.raises(ReportError, match=said):
        files_of([str(tmp_path / name) for name in names], None)
    with pytest.raises(ReportError, match="is not there"):
        files_of([str(tmp_path / "away.csv")], None)


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        (Request(speed=Fraction(0)), "--speed 0"),
        (Request(partitions=0), "--partitions 0"),
        (Request(by="zone"), "--by zone needs 2"),
        (Request(duration_s=0), "--duration-s 0"),
        (Request(duration_s=66_961), "the trace has 1 to 66960 s"),
        (Request(speed=Fraction(1), partitions=100), "are more than 10,000,000 numbers"),
    ],
)
def test_what_no_trace_can_be_is_refused(request_: Request, said: str) -> None:
    with pytest.raises(InvalidSettingsError, match=said):
        request_.seconds(JANUARY, JANUARY)


def test_a_zone_goes_where_kafkas_clients_would_send_it() -> None:
    found = partitions_of_zones(9)
    assert len(found) == 266
    assert found[0] == found[264], "no zone is the unknown one"
    assert set(found) == set(range(9))
