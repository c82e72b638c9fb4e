"""The curves of the workloads: those of the autoscaling papers, and our own, each of which asks one question.

Sources: CLOSER 2024, figures 2, 3 and 6; ICCBDC 2022. Our own stay below 500 events/s.
"""

from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

IntArray: TypeAlias = npt.NDArray[np.int64]
FloatArray: TypeAlias = npt.NDArray[np.float64]
Knots: TypeAlias = tuple[tuple[float, float], ...]
"""(t in s, rate in events/s) each, t growing from 0."""

W1_KNOTS: Final[Knots] = ((0, 0), (125, 200), (212.5, 150), (300, 275), (387.5, 150), (475, 350), (600, 0))
W3_RAMPS_S: Final = (120, 120, 240, 360)
"""When partitions 0 to 3 of W3 begin to grow; partition 4 never does."""
W4_SHARES: Final = (0.27, 0.27, 0.153, 0.153, 0.153)

TAXI_S: Final = 7207
TAXI_MEAN: Final = 228.7
"""Events/s."""
TAXI_DAY_S: Final = 2160.0
"""A real hour is 90 s."""
TAXI_DAILY: Final = (
    (-304.5, -606.2),
    (-142.9, 236.7),
    (5.0, 9.7),
    (-9.0, 9.3),
    (11.5, -9.8),
    (2.4, -5.6),
    (-5.7, -3.8),
    (-2.2, 4.6),
    (-0.4, -0.9),
    (1.0, 0.5),
)
"""Weights of cos and sin of 1, 2, … periods per day."""
TAXI_TREND: Final = (
    (103.4, -21.6),
    (153.6, -3.3),
    (488.1, 37.2),
    (-241.6, 6.7),
    (-119.3, 25.4),
    (-175.5, 49.7),
    (239.3, 18.1),
    (25.5, 14.0),
)
"""The same, of 1, 2, … periods in the whole run."""

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

LANDAU_MOST: Final = 100
"""Of a partition's load; what a consumer takes, in the paper."""
LANDAU_PARTITIONS, LANDAU_S, LANDAU_SEED = 32, 100, 2402
HOT_PARTITIONS: Final = 9
CALM_RATE: Final = 18
"""Events/s of a partition without the hot key: five of them fill a bin of 100."""
HOT_RATE: Final = 70
"""Events/s of the hot key on top: 88 together, so that one more calm partition is too much for the bin."""
STAY_S: Final = 60
WANDER_S: Final = 10
"""Seconds in which the hot key's events go over from one partition to the next."""
WANDER_SEED: Final = 9


def half_cosine(knots: Knots) -> FloatArray:
    """Return the rate (events/s) in the middle of each second of a curve that eases from knot to knot.

    Between two of them the rate is r0 + (r1 − r0)·(1 − cos(π·(t − t0)/(t1 − t0)))/2.
    """
    times, rates = np.array(knots, dtype=np.float64).T
    t = np.arange(0.5, times[-1])
    left = np.searchsorted(times, t, side="right") - 1
    t0, t1, r0, r1 = times[left], times[left + 1], rates[left], rates[left + 1]
    return np.asarray(r0 + (r1 - r0) * (1 - np.cos(np.pi * (t - t0) / (t1 - t0))) / 2)


def straight(knots: Knots) -> FloatArray:
    """Return the rate (events/s) in the middle of each second of a curve of straight lines from knot to knot.

    Two knots at the same time make a step.
    """
    times, rates = np.array(knots, dtype=np.float64).T
    return np.asarray(np.interp(np.arange(0.5, times[-1]), times, rates))


def whole_events(rate: npt.NDArray[np.floating[Any]]) -> IntArray:
    """Return n(t) = ⌈rate⌉."""
    return np.asarray(np.ceil(rate), dtype=np.int64)


def w1() -> IntArray:
    """Return three growing waves to 350 events/s in 600 s."""
    return whole_events(half_cosine(W1_KNOTS))


def w3() -> IntArray:
    """Return 15 events/s in each of five partitions; four grow by 1 a second to 60, and fall back at 480 s."""
    table = np.full((600, 5), 15)
    for partition, ramp_s in enumerate(W3_RAMPS_S):
        table[ramp_s:480, partition] = np.minimum(15 + np.arange(480 - ramp_s), 60)
    return table


def skew_9(n: IntArray) -> IntArray:
    """Spread n(t) over nine partitions: two get ⌈0.25·n⌉ each, seven ⌈0.5·n/7⌉ each. Shape (seconds, 9)."""
    hot, cold = whole_events(0.25 * n), whole_events(0.5 * n / 7)
    return np.column_stack([hot] * 2 + [cold] * 7)


def w4_shares(n: IntArray) -> IntArray:
    """Spread n(t) over five partitions: two get ⌊0.27·n⌋ each, three ⌊0.153·n⌋ each. Shape (seconds, 5)."""
    return np.column_stack([np.floor(share * n).astype(np.int64) for share in W4_SHARES])


def taxi() -> IntArray:
    """Return New York's taxi trips of January 2013, 40 times faster: ⌈rate⌉ at whole seconds, the rate never below 0.

    CLOSER 2024, figure 3. The published trace has no licence; this is a harmonic fit of its curve (rmse 8.8 events/s)
    without its first minute.
    """
    t = np.arange(TAXI_S, dtype=np.float64)
    rate = TAXI_MEAN + _harmonics(t, TAXI_DAY_S, TAXI_DAILY) + _harmonics(t, float(TAXI_S), TAXI_TREND)
    return whole_events(np.maximum(0.0, rate))


def _harmonics(t: FloatArray, period_s: float, weights: tuple[tuple[float, float], ...]) -> FloatArray:
    """Return Σ a·cos(2πkt/period) + b·sin(2πkt/period) over k = 1, 2, …"""
    cosine, sine = np.array(weights).T
    angle = 2 * np.pi * np.outer(t, np.arange(1, len(weights) + 1)) / period_s
    return np.asarray(np.cos(angle) @ cosine + np.sin(angle) @ sine)


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


def wander(
    chance: np.random.Generator, *, partitions: int, seconds: int, delta: int, start: int | None = None
) -> IntArray:
    """Return loads of 0 … 100 that change by a uniform integer of {−delta, …, delta} from row to row, clipped.

    Landau et al. 2024, section VI. start: of every partition; None draws each. Shape (seconds, partitions).
    """
    loads = np.empty((seconds, partitions), np.int64)
    loads[0] = chance.integers(0, LANDAU_MOST, partitions, endpoint=True) if start is None else start
    steps = chance.integers(-delta, delta, (seconds - 1, partitions), endpoint=True)
    for second, step in enumerate(steps, start=1):
        loads[second] = np.clip(loads[second - 1] + step, 0, LANDAU_MOST)
    return loads


def landau(delta: int) -> IntArray:
    """Return such a walk as events/s: 32 partitions for 100 s, which is one of the paper's sizes."""
    return wander(np.random.default_rng(LANDAU_SEED), partitions=LANDAU_PARTITIONS, seconds=LANDAU_S, delta=delta)
