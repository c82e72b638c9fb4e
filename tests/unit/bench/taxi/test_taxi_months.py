"""A file holds a month; months make a trace when none is missing between them."""

import pytest

from bench.taxi.months import Month, month_in, parse_month, without_gap


def test_a_month_is_as_long_as_the_calendar_says() -> None:
    january = Month(2013, 1)

    assert january.began_s == 1_356_998_400
    assert january.ended_s - january.began_s == 31 * 86_400
    assert Month(2012, 2).days == 29
    assert january.ended_s == january.following.began_s
    assert Month(2012, 12).following == january


@pytest.mark.parametrize(
    ("name", "month"),
    [
        ("yellow_tripdata_2013-01.parquet", Month(2013, 1)),
        ("s3a://bucket/2012-07/yellow_tripdata_2013-12.csv", Month(2013, 12)),
        ("/data/2013-01/trips.csv", None),
        ("made-2010-99-2013-02.csv.gz", Month(2013, 2)),
        ("trips-12013-01.csv", None),
    ],
)
def test_the_name_of_a_file_says_its_month(name: str, month: Month | None) -> None:
    assert month_in(name) == month


@pytest.mark.parametrize("text", ["2013", "2013-13", "13-01", "January", "1969-12", ""])
def test_what_is_no_month_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="write YYYY-MM"):
        parse_month(text)


def test_months_in_any_order_make_one_stretch_but_not_with_a_hole() -> None:
    december, january, march = Month(2012, 12), Month(2013, 1), Month(2013, 3)

    assert without_gap([january, december, january]) == (december, january)
    with pytest.raises(ValueError, match="2012-12 and 2013-03 are there, 2013-02 is missing"):
        without_gap([december, march, january])
