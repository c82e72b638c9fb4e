"""From counters to rates, against a known truth."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.estimation import ArrivalRates, ServiceRate, WorkCounters


def feed(estimate, replica, incarnation, readings):
    for processed, busy_us in readings:
        estimate.observe(WorkCounters(replica, incarnation, processed, busy_us))


def test_the_prior_stands_until_there_is_evidence():
    estimate = ServiceRate(200.0, enough_events=100)

    feed(estimate, "payment-0", "first", [(0, 0), (99, 990_000)])
    assert estimate.service_rate == 200.0

    feed(estimate, "payment-0", "first", [(100, 1_000_000)])
    assert estimate.service_rate == pytest.approx(100.0)


def test_the_truth_is_learned_whatever_the_utilization():
    """Exponential service times with a mean of 5.7 ms, read four times per second from three replicas."""
    chance = random.Random(7)
    estimate = ServiceRate(200.0)
    counters = {f"payment-{i}": (0, 0) for i in range(3)}
    for _ in range(400):
        for replica, (processed, busy_us) in counters.items():
            served = chance.choice([0, 1, 5, 40])
            spent_us = sum(round(chance.expovariate(1 / 5700)) for _ in range(served))
            counters[replica] = processed + served, busy_us + spent_us
            feed(estimate, replica, "first", [counters[replica]])

    assert estimate.service_rate == pytest.approx(1e6 / 5700, rel=0.05)


def test_a_machine_that_slows_down_is_noticed():
    estimate = ServiceRate(200.0, memory_events=500)
    feed(estimate, "payment-0", "first", [(n * 100, n * 500_000) for n in range(50)])
    assert estimate.service_rate == pytest.approx(200.0)

    feed(estimate, "payment-0", "first", [(4900 + n * 100, 24_500_000 + n * 1_000_000) for n in range(50)])
    assert estimate.service_rate == pytest.approx(100.0, rel=0.01)


def test_a_restart_is_no_negative_work():
    estimate = ServiceRate(200.0)
    feed(estimate, "payment-0", "first", [(0, 0), (1000, 5_000_000)])
    feed(estimate, "payment-0", "second", [(10, 50_000), (1010, 5_050_000)])

    assert estimate.service_rate == pytest.approx(200.0)


def test_a_controller_that_starts_late_does_not_take_old_counters_for_new_work():
    estimate = ServiceRate(200.0)

    feed(estimate, "payment-0", "first", [(1_000_000, 1)])

    assert estimate.service_rate == 200.0


def test_readings_out_of_order_and_in_silence_change_nothing():
    estimate = ServiceRate(200.0)
    feed(estimate, "payment-0", "first", [(0, 0), (1000, 10_000_000)])
    feed(estimate, "payment-0", "first", [(900, 9_000_000), (1000, 10_000_000), (1001, 10_000_000)])
    assert estimate.service_rate == pytest.approx(100.0)

    feed(estimate, "payment-0", "first", [(1100, 11_000_000)])
    assert estimate.service_rate == pytest.approx(100.0)


@given(st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("xy"), st.integers(0, 10**9), st.integers(0, 10**9))))
def test_whatever_the_counters_say_the_rate_is_a_positive_number(readings):
    estimate = ServiceRate(200.0)
    for replica, incarnation, processed, busy_us in readings:
        estimate.observe(WorkCounters(replica, incarnation, processed, busy_us))

    assert 0 < estimate.service_rate < float("inf")


@pytest.mark.parametrize("prior", [0, -1, float("nan"), float("inf")])
def test_a_prior_must_be_a_rate(prior):
    with pytest.raises(ValueError, match="must be positive"):
        ServiceRate(prior)


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
