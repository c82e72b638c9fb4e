"""The curves of the workloads: integer arrays of events in each second, shape (seconds,) or (seconds, partitions).

Sources: CLOSER 2024, figures 2, 3 and 6; ICCBDC 2022. Other workloads are our own. Each of those tests one kind of
change.
"""

from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

IntArray: TypeAlias = npt.NDArray[np.int64]
FloatArray: TypeAlias = npt.NDArray[np.float64]
Knots: TypeAlias = tuple[tuple[float, float], ...]
"""Points (t in s, rate in events/s), with t ascending from 0."""

W1_KNOTS: Final[Knots] = ((0, 0), (125, 200), (212.5, 150), (300, 275), (387.5, 150), (475, 350), (600, 0))
W4_SHARES: Final = (0.27, 0.27, 0.153, 0.153, 0.153)
TAXI_S: Final = 7207
TAXI_DAY_S: Final = 2160.0
"""Duration of a day of the taxi trace, seconds. A real hour takes 90 s."""
TAXI_MEAN: Final = 228.7
"""Mean load, events/s."""
TAXI_DAILY: Final = (
    *((-304.5, -606.2), (-142.9, 236.7), (5.0, 9.7), (-9.0, 9.3), (11.5, -9.8)),
    *((2.4, -5.6), (-5.7, -3.8), (-2.2, 4.6), (-0.4, -0.9), (1.0, 0.5)),
)
"""Weights of cos and sin of 1, 2, … periods per day."""
TAXI_TREND: Final = (
    *((103.4, -21.6), (153.6, -3.3), (488.1, 37.2), (-241.6, 6.7)),
    *((-119.3, 25.4), (-175.5, 49.7), (239.3, 18.1), (25.5, 14.0)),
)
"""Weights of cos and sin of 1, 2, … periods per run."""
HOUR_S: Final = 30
"""Duration of an hour of `diurnal-week`, seconds. Seven days take 84 minutes."""
DAY: Final = ((0, 60), (4, 25), (9, 210), (13, 160), (19, 300), (24, 60))
"""A working day, (hour, events/s): night, morning peak, noon, evening peak. A weekend day has 60 % of it."""


def half_cosine(knots: Knots) -> FloatArray:
    """Return the rate (events/s) in the middle of each second of a curve with cosine easing between knots.

    Between the knots (t0, r0) and (t1, r1) the rate at time t is r0 + (r1 − r0)·(1 − cos(π·(t − t0)/(t1 − t0)))/2.
    """
    times, rates = np.array(knots, dtype=np.float64).T
    t = np.arange(0.5, times[-1])
    left = np.searchsorted(times, t, side="right") - 1
    t0, t1, r0, r1 = times[left], times[left + 1], rates[left], rates[left + 1]
    return np.asarray(r0 + (r1 - r0) * (1 - np.cos(np.pi * (t - t0) / (t1 - t0))) / 2)


def curve(text: str) -> IntArray:
    """Return the events of each second of `80 for 200, to 330 in 50`: 80 events/s for 200 s, then 50 s up to 330.

    Raises ValueError for another text.
    """
    parts, rate = list[FloatArray](), 0.0
    for piece in text.split(","):
        match piece.split():
            case [target, "for", seconds]:
                part = np.full(int(seconds), float(target))
            case ["to", target, "in", seconds]:
                part = rate + (float(target) - rate) * np.arange(0.5, int(seconds)) / int(seconds)
            case _:
                raise ValueError(f"{piece.strip()!r} must be 'RATE for SECONDS' or 'to RATE in SECONDS'")
        rate = float(target)
        parts.append(part)
    return whole_events(np.maximum(np.concatenate(parts), 0))


def whole_events(rate: npt.NDArray[np.floating[Any]]) -> IntArray:
    """Return the rates rounded up to whole events."""
    return np.asarray(np.ceil(rate), dtype=np.int64)


def w1() -> IntArray:
    """Return three growing waves to 350 events/s in 600 s."""
    return whole_events(half_cosine(W1_KNOTS))


def w3() -> IntArray:
    """Return 15 events/s in each of five partitions. Four gain 1 event/s each second, up to 60, and drop at 480 s."""
    table = np.full((600, 5), 15)
    for partition, ramp_s in enumerate((120, 120, 240, 360)):
        table[ramp_s:480, partition] = np.minimum(15 + np.arange(480 - ramp_s), 60)
    return table


def skew_9(n: IntArray) -> IntArray:
    """Spread n events per second over nine partitions: two get ⌈0.25·n⌉, seven ⌈0.5·n/7⌉. Shape (seconds, 9)."""
    hot, cold = whole_events(0.25 * n), whole_events(0.5 * n / 7)
    return np.column_stack([hot] * 2 + [cold] * 7)


def w4_shares(n: IntArray) -> IntArray:
    """Spread n events per second over five partitions: two get ⌊0.27·n⌋, three ⌊0.153·n⌋. Shape (seconds, 5)."""
    return np.column_stack([np.floor(share * n).astype(np.int64) for share in W4_SHARES])


def taxi() -> IntArray:
    """Return New York's taxi trips of January 2013, 40 times faster: events per second, rounded up.

    CLOSER 2024, figure 3. The published trace has no licence. This is a harmonic fit of its curve without the first
    minute. The root-mean-square error of the fit is 8.8 events/s.
    """
    t = np.arange(TAXI_S, dtype=np.float64)
    rate = TAXI_MEAN + _harmonics(t, TAXI_DAY_S, TAXI_DAILY) + _harmonics(t, float(TAXI_S), TAXI_TREND)
    return whole_events(np.maximum(0.0, rate))


def _harmonics(t: FloatArray, period_s: float, weights: tuple[tuple[float, float], ...]) -> FloatArray:
    cosine, sine = np.array(weights).T
    angle = 2 * np.pi * np.outer(t, np.arange(1, len(weights) + 1)) / period_s
    return np.asarray(np.cos(angle) @ cosine + np.sin(angle) @ sine)


def sine() -> IntArray:
    """Return five periods of 120 s between 40 and 400 events/s."""
    return whole_events(220 - 180 * np.cos(2 * np.pi * np.arange(0.5, 600) / 120))


def diurnal_week() -> IntArray:
    """Return seven days from Monday. Counts are Poisson-distributed around the rate."""
    day = half_cosine(tuple((hour * HOUR_S, rate) for hour, rate in DAY))
    week = np.concatenate([day] * 5 + [0.6 * day] * 2)
    return np.random.default_rng(7).poisson(week).astype(np.int64)


def hot_key() -> IntArray:
    """Return nine partitions of 18 events/s, and a key of 70 events/s. Each minute it moves, in ten seconds.

    A consumer with a capacity of 100 events/s can own five partitions, or only the one with the key.
    """
    random = np.random.default_rng(9)
    table = np.full((600, 9), 18)
    owner = int(random.integers(9))
    table[:60, owner] += 70
    moved = 70 * np.minimum(np.arange(1, 61), 10) // 10
    for begin_s in range(60, 600, 60):
        target = int((owner + random.integers(1, 9)) % 9)
        table[begin_s : begin_s + 60, owner] += 70 - moved
        table[begin_s : begin_s + 60, target] += moved
        owner = target
    return table


def flash_crowd() -> IntArray:
    """Return 40 events/s and, at 240 and 600 s, 800 for a minute, then an exponential decay with time constant 45 s."""
    t = np.arange(900)[:, None] - np.array((240, 600))
    crowd = np.where(t < 0, 0.0, np.exp(-np.maximum(0, t - 60) / 45)).max(axis=1)
    return whole_events(40 * (1 + 19 * crowd))


def square(half_s: int) -> IntArray:
    """Return 60 and 280 events/s in turn, `half_s` seconds each: one replica or three, if one serves 100 in time."""
    return np.where(np.arange(900) // half_s % 2, 280, 60)


def sawtooth() -> IntArray:
    """Return rises from 46 to 400 events/s in a minute, each followed by a drop within one second."""
    return 40 + 6 * (np.arange(900) % 60) + 6


def heavy() -> IntArray:
    """Return a Pareto-distributed number of events for each second: tail index 2, mean 130, at most 800."""
    drawn = np.random.default_rng(15).pareto(2.0, 900) + 1
    return np.minimum(whole_events(drawn * 130 * (2.0 - 1) / 2.0), 800)


def zipf_100() -> IntArray:
    """Return waves of five minutes, 150 to 450 events/s. Of 100 partitions, rank r gets a share proportional to 1/r."""
    random = np.random.default_rng(100)
    totals = whole_events(300 - 150 * np.cos(2 * np.pi * np.arange(0.5, 900) / 300))
    weights = random.permutation(1 / np.arange(1, 101))
    return np.asarray(random.multinomial(totals, weights / weights.sum()))


def hot_partition() -> IntArray:
    """Return nine partitions of 40 events/s. One has 240 from 300 to 420 s; a replica at 200 events/s is too slow."""
    table = np.full((900, 9), 40)
    table[300:420, 4] = 240
    return table
