"""Shapes of our own that a benchmark of autoscalers needs. Each asks one question; all stay below 500 events/s."""

from typing import Final

import numpy as np

from loadgen.curves import IntArray, half_cosine, straight, whole_events

SHAPE_S: Final = 600
"""Seconds that each lasts, but for the week."""

HOUR_S: Final = 30
"""Of the week, so that seven days take 84 minutes."""
DAY_S: Final = 24 * HOUR_S
DAY: Final = ((0, 60), (4, 25), (9, 210), (13, 160), (19, 300), (24, 60))
"""A working day, (hour, events/s): night, morning peak, noon, evening peak."""
WEEKEND: Final = 0.6
"""Of the rate of a working day."""
WEEK_SEED: Final = 7

HOT_PARTITIONS: Final = 9
CALM_RATE: Final = 18
"""Events/s of a partition without the hot key: five of them fill a bin of 100."""
HOT_RATE: Final = 70
"""Events/s of the hot key on top: 88 together, so that one more calm partition is too much for the bin."""
STAY_S: Final = 60
WANDER_S: Final = 10
"""Seconds in which the hot key's events go over from one partition to the next."""
WANDER_SEED: Final = 9


def step() -> IntArray:
    """Return 80 events/s, 330 from one second to the next at 200 s, 130 from 400 s on."""
    return np.repeat(np.array([80, 330, 130]), 200)


def ramp() -> IntArray:
    """Return a straight climb from 30 to 450 events/s in 420 s, a minute there, and the way down in half the time."""
    return whole_events(straight(((0, 30), (420, 450), (480, 450), (600, 30))))


def sine() -> IntArray:
    """Return five periods of 120 s between 40 and 400 events/s."""
    t = np.arange(0.5, SHAPE_S)
    return whole_events(220 - 180 * np.cos(2 * np.pi * t / 120))


def spike() -> IntArray:
    """Return 60 events/s with spikes that nothing announces: 400 for 30 s, 450 for 5 s, 480 for a single second."""
    counts = np.full(SHAPE_S, 60)
    counts[150:180] = 400
    counts[300:305] = 450
    counts[450] = 480
    return counts


def silence() -> IntArray:
    """Return 150 events/s, three minutes of nothing, 300 at once, ten seconds of nothing, 100 to the end."""
    counts = np.full(SHAPE_S, 100)
    counts[:200] = 150
    counts[200:380] = 0
    counts[380:480] = 300
    counts[480:490] = 0
    return counts


def diurnal_week() -> IntArray:
    """Return seven days, Monday first, each like the other but for the weekend; counts are Poisson around the rate."""
    day = half_cosine(tuple((hour * HOUR_S, rate) for hour, rate in DAY))
    week = np.concatenate([day] * 5 + [WEEKEND * day] * 2)
    return np.random.default_rng(WEEK_SEED).poisson(week).astype(np.int64)


def hot_key() -> IntArray:
    """Return nine equal partitions, and a key as hot as four of them that wanders: each minute it is another's.

    The next one is chosen at random among the others.
    """
    random = np.random.default_rng(WANDER_SEED)
    table = np.full((SHAPE_S, HOT_PARTITIONS), CALM_RATE)
    here = int(random.integers(HOT_PARTITIONS))
    table[:STAY_S, here] += HOT_RATE
    gone = HOT_RATE * np.minimum(np.arange(1, STAY_S + 1), WANDER_S) // WANDER_S
    for begin_s in range(STAY_S, SHAPE_S, STAY_S):
        there = int((here + random.integers(1, HOT_PARTITIONS)) % HOT_PARTITIONS)
        table[begin_s : begin_s + STAY_S, here] += HOT_RATE - gone
        table[begin_s : begin_s + STAY_S, there] += gone
        here = there
    return table
