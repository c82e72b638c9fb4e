"""What trace can be asked for."""

from fractions import Fraction

import pytest

from bench.taxi.months import Month
from bench.taxi.request import Request, parse_speed, window_of
from contracts.validation import InvalidSettingsError

JANUARY = Month(2013, 1)


def test_a_month_forty_times_faster_lasts_eighteen_and_a_half_hours() -> None:
    window = window_of(Request(), JANUARY, JANUARY)

    assert window.duration_s == 31 * 24 * 90
    assert window.began_s == JANUARY.began_s


def test_several_months_are_one_trace_and_a_last_second_that_is_not_whole_counts() -> None:
    assert window_of(Request(), JANUARY, Month(2013, 2)).duration_s == (31 + 28) * 24 * 90
    assert window_of(Request(speed=Fraction(1000)), JANUARY, JANUARY).duration_s == 2679  # 2678.4


def test_only_its_beginning_may_be_asked_for_but_not_more_than_there_is() -> None:
    assert window_of(Request(duration_s=7207), JANUARY, JANUARY).duration_s == 7207
    with pytest.raises(InvalidSettingsError, match="2013-01 at speed 40 is a trace of 66960 s"):
        window_of(Request(duration_s=66_961), JANUARY, JANUARY)


def test_a_trace_too_large_for_its_readers_is_refused_before_any_work() -> None:
    with pytest.raises(InvalidSettingsError, match="2,678,400 seconds times 9 partitions"):
        window_of(Request(speed=Fraction(1), partitions=9), JANUARY, JANUARY)


@pytest.mark.parametrize("text", ["40", "37.5", "0.5", "1/3"])
def test_speed_factors_are_exact(text: str) -> None:
    assert parse_speed(text) == Fraction(text)


@pytest.mark.parametrize("text", ["fast", "", "1/0", "nan", "inf"])
def test_what_is_no_speed_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no speed factor"):
        parse_speed(text)


def test_every_mistake_of_a_request_is_named_at_once() -> None:
    with pytest.raises(InvalidSettingsError) as refused:
        Request(speed=Fraction(0), partitions=0, by="zone", duration_s=0, max_miles=-1.0, max_fare=-1.0)

    assert len(refused.value.problems) == 6
    with pytest.raises(InvalidSettingsError, match="--by zone: needs --partitions"):
        Request(by="zone")
