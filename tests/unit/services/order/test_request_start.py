"""The start time of a request is read from its header, within limits."""

import pytest

from services.order.http import MAX_REQUEST_AGE_US, _intended_us

NOW_US = 1_800_000_000_123_456


@pytest.mark.parametrize(
    ("header", "start_us"),
    [
        ("t=1800000000.123455", NOW_US - 1),
        ("t=1800000000", NOW_US - 123_456),
        ("t=1799999940.123456", NOW_US - MAX_REQUEST_AGE_US),
        ("t=1799999940.123455", NOW_US),
        ("t=1800000000.123457", NOW_US),
        ("t=-5", NOW_US),
        ("t=1e9", NOW_US),
        ("t=nan", NOW_US),
        ("1800000000", NOW_US),
        ("", NOW_US),
    ],
)
def test_a_start_time_is_used_only_if_it_is_in_the_last_minute(header: str, start_us: int) -> None:
    assert _intended_us(header, NOW_US) == start_us
