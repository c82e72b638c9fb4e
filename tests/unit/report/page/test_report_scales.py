"""Axes: round values, never too many, none outside."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from report.page.drawing.scales import Scale, clock, decades, round_ticks, time_ticks


@example(1.0, 444_445.0, 2)
@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6), st.integers(2, 12))
def test_ticks_lie_within_and_are_few(low: float, length: float, count: int) -> None:
    ticks = round_ticks(low, low + length, count)
    assert 1 <= len(ticks) <= 1.2 * count + 1
    slack = 1e-6 * max(1, abs(low), length)
    assert all(low - slack <= tick <= low + length + slack for tick in ticks)


@given(st.floats(-6, 5), st.floats(0.7, 6), st.integers(3, 12))
def test_decades_are_few_and_within(low: float, span: float, count: int) -> None:
    ticks = decades(10**low, 10 ** (low + span), count)
    assert len(ticks) <= count
    assert all(10**low * 0.999 <= tick <= 10 ** (low + span) * 1.001 for tick in ticks)


def test_small_numbers_of_replicas_have_every_line() -> None:
    assert round_ticks(0, 3.15, 3) == [0, 1, 2, 3]


def test_a_logarithmic_scale_gives_each_decade_the_same_room() -> None:
    scale = Scale(1, 1000, 0, 300, log=True)
    assert scale.at([1, 10, 100, 1000, 0]).tolist() == pytest.approx([0, 100, 200, 300, 0])
    assert np.isnan(scale.at([np.nan])).all()


def test_time_is_told_as_clocks_do() -> None:
    assert time_ticks(124, 10) == [0, 15, 30, 45, 60, 75, 90, 105, 120]
    assert [clock(at_s) for at_s in time_ticks(36_000, 5)] == [
        "0:00", "2:00:00", "4:00:00", "6:00:00", "8:00:00", "10:00:00",
    ]  # fmt: skip
    assert clock(75) == "1:15"
