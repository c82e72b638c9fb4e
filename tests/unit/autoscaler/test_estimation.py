"""From counters to rates, against a known truth."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.estimation import ArrivalRates


def test_arrivals_are_counted_between_the_last_two_readings():
    arrivals = ArrivalRates()

    arrivals.observe(10.0, {0: 1000, 1: 0})
    assert arrivals.rates() == {}
    assert arrivals.unknown([0, 1]) == (0, 1)

    arrivals.observe(12.0, {0: 1100, 1: 0})
    assert arrivals.rates() == {0: 50.0, 1: 0.0}

    arrivals.observe(13.0, {0: 1100, 1: 7})
    assert arrivals.rates() == {0: 0.0, 1: 7.0}
    assert arrivals.unknown([0, 1]) == ()


def test_a_partition_that_cannot_be_read_is_unknown_and_then_spans_the_gap():
    arrivals = ArrivalRates()
    arrivals.observe(0.0, {0: 0, 1: 0})
    arrivals.observe(1.0, {0: 10, 1: 10})

    arrivals.observe(2.0, {0: 20, 1: None})
    assert arrivals.rates() == {0: 10.0}
    assert arrivals.unknown([0, 1]) == (1,)

    arrivals.observe(3.0, {0: 30, 1: 50})
    assert arrivals.rates() == {0: 10.0, 1: 20.0}


def test_a_topic_made_anew_starts_from_nothing():
    arrivals = ArrivalRates()
    arrivals.observe(0.0, {0: 500})
    arrivals.observe(1.0, {0: 600})

    arrivals.observe(2.0, {0: 40})
    assert arrivals.unknown([0]) == (0,)

    arrivals.observe(3.0, {0: 70})
    assert arrivals.rates() == {0: 30.0}


def test_a_deleted_partition_is_forgotten():
    arrivals = ArrivalRates()
    arrivals.observe(0.0, {0: 0, 1: 0})
    arrivals.observe(1.0, {0: 5, 1: 5})
    arrivals.observe(2.0, {0: 10})
    arrivals.observe(3.0, {0: 15, 1: 900})

    assert arrivals.rates() == {0: 5.0}


def test_a_clock_that_stands_still_or_goes_back_makes_no_rate():
    arrivals = ArrivalRates()
    arrivals.observe(5.0, {0: 0})
    arrivals.observe(6.0, {0: 10})

    arrivals.observe(6.0, {0: 15})
    assert arrivals.rates() == {0: 10.0}
    arrivals.observe(7.0, {0: 30})
    assert arrivals.rates() == {0: 20.0}, "10 at 6 s, 30 at 7 s"
    arrivals.observe(3.0, {0: 31})
    assert arrivals.rates() == {}


@given(st.floats(0.2, 500), st.lists(st.floats(0.2, 3), min_size=2, max_size=30))
def test_a_steady_stream_is_measured_to_one_event(rate, pauses):
    arrivals, at_s = ArrivalRates(), 0.0
    for pause_s in pauses:
        at_s += pause_s
        arrivals.observe(at_s, {0: int(rate * at_s)})

    assert arrivals.rates()[0] == pytest.approx(rate, abs=1.01 / pauses[-1])
