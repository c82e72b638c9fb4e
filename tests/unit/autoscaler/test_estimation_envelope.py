"""Arrival envelopes against known truths: bursts, smooth and poisson arrivals, alone and together."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from autoscaler.estimation import Envelope
from autoscaler.model import RecentArrivals

SLOT_S = 0.1


def burst(n, slots=10):
    """All n of a second in its first slot."""
    counts = np.zeros(slots, np.int64)
    counts[0] = n
    return counts


def smooth(n, slots=10):
    return np.diff(np.floor(np.linspace(0, n, slots + 1))).astype(np.int64)


def learned(*columns, seconds=30, **how):
    """Return an envelope of partitions with so many events in the slots of each second; a function is drawn anew."""
    envelope = Envelope(**how)
    for _ in range(seconds):
        counts = np.column_stack([column() if callable(column) else column for column in columns])
        envelope.observe(RecentArrivals(SLOT_S, counts))
    return envelope


def test_bursts_smooth_and_poisson_are_told_apart():
    rng = np.random.default_rng(3)
    envelope = learned(burst(100), smooth(100), lambda: rng.poisson(10, 10))

    assert envelope.rates == pytest.approx([100, 100, 100], rel=0.05)
    bursts, even, chance = envelope.sigma(np.full(3, 100.0))
    assert bursts == pytest.approx(100)
    assert even == pytest.approx(10), "one slot's worth: it may have come in one instant"
    assert 15 < chance < 50
    bursts, even, chance = envelope.sigma(np.full(3, 100.0), at_once=False)
    assert bursts == pytest.approx(100 * (1 - SLOT_S))
    assert even == pytest.approx(0)
    assert 5 < chance < 40


def test_dispersion_is_none_of_smooth_one_of_poisson_and_the_burst_of_bursts():
    rng = np.random.default_rng(3)
    envelope = learned(
        burst(100), smooth(100), lambda: rng.poisson(10, 10), np.zeros(10, np.int64), seconds=80, half_life_s=60
    )

    bursts, even, chance, silent = envelope.dispersion()
    assert bursts == pytest.approx(100 * (1 - SLOT_S), rel=0.05)
    assert even == pytest.approx(0, abs=1e-9)
    assert chance == pytest.approx(1, abs=0.15)
    assert silent == 0


def test_the_burst_that_straddles_two_observations_is_seen():
    late, early = burst(40)[::-1].copy(), burst(40)
    envelope = Envelope()
    for counts in (late, early):
        envelope.observe(RecentArrivals(SLOT_S, counts[:, None]))

    assert envelope.sigma(np.array([100.0]))[0] == pytest.approx(80 - 100 * SLOT_S)


def test_a_rate_above_the_average_leaves_less_of_a_long_burst():
    """50 events in each of four slots, then silence."""
    envelope = learned(np.array([50] * 4 + [0] * 6), half_life_s=100)

    sigma = [float(envelope.sigma(np.array([rate]))[0]) for rate in (0.0, 200.0, 400.0, 499.0, 500.0, 900.0)]

    assert sigma == pytest.approx([200, 140, 80, 50.3, 50, 50])


def test_a_horizon_keeps_a_trend_from_being_a_burst():
    """At ρ = 50 of 100 events/s, the excess grows for as long as one looks."""
    short = learned(smooth(100), horizon_s=0.5).sigma(np.array([50.0]), at_once=False)[0]
    long = learned(smooth(100), horizon_s=5.0).sigma(np.array([50.0]), at_once=False)[0]

    assert short == pytest.approx(25)
    assert long == pytest.approx(250)


def test_a_burst_is_forgotten_by_half_after_each_half_life():
    envelope = learned(burst(80), seconds=1, half_life_s=10)
    quiet = RecentArrivals(SLOT_S, np.zeros((10, 1), np.int64))
    nothing = np.zeros(1)

    sigma = []
    for _ in range(21):
        sigma.append(float(envelope.sigma(nothing)[0]))
        envelope.observe(quiet)

    assert sigma[10] == pytest.approx(sigma[0] / 2)
    assert sigma[20] == pytest.approx(sigma[0] / 4)


def test_bursts_together_add_up_and_bursts_in_turn_do_not():
    envelope = learned(burst(50), burst(50), np.roll(burst(50), 5), half_life_s=10)
    rate = np.array([100.0])

    together = envelope.joint([np.array([0, 1])], rate)[0]
    in_turn = envelope.joint([np.array([0, 2])], rate)[0]

    assert together == pytest.approx(100)
    assert in_turn == pytest.approx(50), "half a second at 100 events/s serves the first before the second comes"
    both = envelope.joint([np.array([0, 1]), np.array([0, 2])], np.array([100.0, 100.0]))
    assert both == pytest.approx([together, in_turn])


recent_counts = arrays(np.int64, (25, 4), elements=st.integers(0, 60))


@given(recent_counts, st.floats(0, 300), st.booleans())
def test_a_group_of_one_is_that_partition_and_no_group_exceeds_its_members(counts, rate, at_once):
    envelope = Envelope(half_life_s=5)
    for part in np.split(counts, [10, 12]):
        envelope.observe(RecentArrivals(SLOT_S, part))

    rates = np.full(4, rate)
    alone = envelope.sigma(rates, at_once=at_once)
    assert envelope.joint([np.array([p]) for p in range(4)], rates, at_once=at_once) == pytest.approx(alone)
    everybody = envelope.joint([np.arange(4)], np.array([4 * rate]), at_once=at_once)[0]
    assert everybody <= alone.sum() + 1e-6


@given(recent_counts, st.floats(1, 300))
def test_no_server_of_that_rate_ever_has_more_than_sigma_waiting(counts, rate):
    """Lindley's recursion over the samples, all events of a slot at its start; windows as long as the history."""
    envelope = Envelope(horizon_s=2.5, half_life_s=100)
    envelope.observe(RecentArrivals(SLOT_S, counts))
    waiting, most = np.zeros(4), np.zeros(4)
    for slot in counts:
        waiting = waiting + slot
        most = np.maximum(most, waiting)
        waiting = np.maximum(0.0, waiting - rate * SLOT_S)

    assert envelope.sigma(np.full(4, rate)) == pytest.approx(most)


def test_a_new_partition_was_silent_so_far():
    envelope = learned(burst(50))
    envelope.observe(RecentArrivals(SLOT_S, np.column_stack([burst(50), burst(20)])))

    assert envelope.sigma(np.array([50.0, 20.0])) == pytest.approx([50, 20])
    assert envelope.joint([np.array([0, 1])], np.array([70.0]))[0] == pytest.approx(70)


def test_observations_may_be_of_any_length():
    envelope = learned(burst(50), half_life_s=5)
    long = np.tile(burst(60), 50)[:, None]
    for counts in (np.empty((0, 1), np.int64), long[:10], long):
        envelope.observe(RecentArrivals(SLOT_S, counts))

    assert envelope.sigma(np.array([60.0]))[0] == pytest.approx(60)


def test_slots_of_another_length_and_partitions_that_vanish_are_refused():
    envelope = learned(burst(50), burst(50))

    with pytest.raises(ValueError, match=r"slots of 0.2 s with 2 partitions cannot follow slots of 0.1 s with 2"):
        envelope.observe(RecentArrivals(0.2, np.zeros((5, 2), np.int64)))
    with pytest.raises(ValueError, match="with 1 partitions cannot follow"):
        envelope.observe(RecentArrivals(SLOT_S, np.zeros((10, 1), np.int64)))
    with pytest.raises(ValueError, match="must be positive seconds"):
        Envelope(horizon_s=0)
