"""Files, folders and addresses; each has a form and a month."""

from pathlib import Path

import pytest

from bench.taxi.months import Month
from bench.taxi.sources import SMALL_BYTES, Source, small, sources_of
from report.spark import ReportError

JANUARY, FEBRUARY = Month(2013, 1), Month(2013, 2)


def test_a_folder_stands_for_the_records_in_it(tmp_path: Path) -> None:
    for name in ("y_2013-02.csv.gz", "y_2013-01.PARQUET", "readme.txt"):
        (tmp_path / name).write_text("12345")

    found = sources_of([str(tmp_path)], None)

    assert [(Path(one.path).name, one.form, one.month, one.size) for one in found] == [
        ("y_2013-01.PARQUET", "parquet", JANUARY, 5),
        ("y_2013-02.csv.gz", "csv", FEBRUARY, 5),
    ]


def test_an_address_is_left_to_hadoop_and_a_month_asked_for_overrules_names() -> None:
    [far] = sources_of(["hdfs://name/yellow_2013-01.csv"], FEBRUARY)

    assert (far.form, far.month, far.size) == ("csv", FEBRUARY, None)


def test_whether_the_job_is_short_follows_from_the_sizes() -> None:
    def of(size: int | None) -> Source:
        return Source("x", "csv", JANUARY, size)

    assert small([of(SMALL_BYTES // 2), of(SMALL_BYTES // 2)])
    assert not small([of(SMALL_BYTES), of(1)])
    assert not small([of(1), of(None)])


def test_what_cannot_be_read_is_said_before_spark_starts(tmp_path: Path) -> None:
    (tmp_path / "trips.csv").touch()
    (tmp_path / "y_2013-01.zip").touch()
    (tmp_path / "y_2013-01.csv").touch()
    (tmp_path / "empty").mkdir()

    for path, said in (
        ("away.csv", "is not there"),
        ("trips.csv", "says no month; name it with --month"),
        ("y_2013-01.zip", "so its form is not known"),
        ("empty", "holds no file that ends in"),
    ):
        with pytest.raises(ReportError, match=said):
            sources_of([str(tmp_path / path)], None)
    with pytest.raises(ReportError, match="is named twice"):
        sources_of([str(tmp_path / "y_2013-01.csv"), str(tmp_path / "empty" / ".." / "y_2013-01.csv")], None)
