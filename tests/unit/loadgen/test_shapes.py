"""Our own shapes ask what they say they ask."""

from itertools import pairwise

import numpy as np

from loadgen.shapes import (
    CALM_RATE,
    DAY_S,
    HOT_PARTITIONS,
    HOT_RATE,
    STAY_S,
    WANDER_S,
    diurnal_week,
    hot_key,
    ramp,
    silence,
    sine,
    spike,
    step,
)


def test_a_step_takes_one_second() -> None:
    counts = step()
    assert counts[[199, 200, 399, 400]].tolist() == [80, 330, 330, 130]


def test_the_ramp_climbs_by_one_a_second_and_never_pauses() -> None:
    counts = ramp()
    assert set(np.diff(counts[:420]).tolist()) == {1}
    assert counts.max() == 450
    assert (np.diff(counts[480:]) < 0).all()


def test_the_sine_repeats_itself_every_two_minutes() -> None:
    counts = sine()
    assert counts.reshape(5, 120).std(axis=0).max() <= 1, "rounding apart"
    assert (counts.min(), counts.max()) == (41, 400)


def test_spikes_come_from_one_second_to_the_next() -> None:
    counts = spike()
    jumps = np.flatnonzero(np.diff(counts) > 0) + 1
    assert jumps.tolist() == [150, 300, 450]
    assert (counts > 60).sum() == 30 + 5 + 1


def test_after_a_silence_the_load_is_there_at_once() -> None:
    counts = silence()
    assert not counts[200:380].any()
    assert counts[380] == counts.max() == 300


def test_a_week_has_five_busy_days_and_two_quiet_ones_each_with_a_night() -> None:
    days = diurnal_week().reshape(7, DAY_S)
    assert days[:5].sum(axis=1).min() > 1.5 * days[5:].sum(axis=1).max()
    assert (np.argmin(days[:, : DAY_S // 2].reshape(7, 12, -1).sum(axis=2), axis=1) <= 4).all()
    assert (np.argmax(days.reshape(7, 24, -1).sum(axis=2), axis=1) >= 18).all(), "the evening is the peak"


def test_the_hot_key_is_always_somewhere_and_moves_every_minute() -> None:
    table = hot_key()
    assert (table.sum(axis=1) == HOT_PARTITIONS * CALM_RATE + HOT_RATE).all()
    owners = [int(np.argmax(table[second])) for second in range(WANDER_S, len(table), STAY_S)]
    assert all(before != after for before, after in pairwise(owners))
    assert len(set(owners)) > 3
    assert table.max() == CALM_RATE + HOT_RATE
