"""Curves of the hard worlds: what breaks an autoscaler that was made for waves. 900 s each."""

from typing import Final

import numpy as np

from loadgen.shapes import IntArray, whole_events

HARD_S: Final = 900
"""Seconds that each lasts."""
CALM_RATE: Final = 40
CROWD: Final = 20
"""Times the calm rate, from one second to the next."""
CROWDS_S: Final = (240, 600)
STAY_S: Final = 60
FADE_S: Final = 45
"""A crowd stays whole for STAY_S; then e-fold of it leaves in so long."""
HIGH, LOW = 280, 60
"""Events/s of the square waves: in bursts a replica holds 100, so three are needed, then one."""
TOOTH_S: Final = 60
HEAVY_MEAN: Final = 130
HEAVY_SHAPE: Final = 2.0
"""Tail index of Pareto: the mean exists, the variance does not."""
HEAVY_MOST: Final = 800
HEAVY_SEED: Final = 15
ZIPF_PARTITIONS: Final = 100
ZIPF_SEED: Final = 100
HOT_PARTITIONS: Final = 9
HOT_CALM: Final = 40
HOT_MOST: Final = 240
"""Events/s of a partition that no replica of 200 events/s serves."""
HOT_FROM_S, HOT_UNTIL_S = 300, 420


def flash_crowd() -> IntArray:
    """Return 40 events/s and, twice and unannounced, 800 for a minute; then the crowd leaves little by little."""
    t = np.arange(HARD_S)[:, None] - np.array(CROWDS_S)
    there = np.where(t < 0, 0.0, np.exp(-np.maximum(0, t - STAY_S) / FADE_S)).max(axis=1)
    return whole_events(CALM_RATE * (1 + (CROWD - 1) * there))


def square(half_s: int) -> IntArray:
    """Return HIGH and LOW in turn, each for `half_s` seconds."""
    return np.where(np.arange(HARD_S) // half_s % 2, HIGH, LOW)


def sawtooth() -> IntArray:
    """Return climbs from 40 to 400 events/s in a minute, each followed by a fall from one second to the next."""
    return 40 + 6 * (np.arange(HARD_S) % TOOTH_S) + 6


def heavy() -> IntArray:
    """Return independent seconds whose events are Pareto with mean 130, at most 800."""
    drawn = np.random.default_rng(HEAVY_SEED).pareto(HEAVY_SHAPE, HARD_S) + 1
    return np.minimum(whole_events(drawn * HEAVY_MEAN * (HEAVY_SHAPE - 1) / HEAVY_SHAPE), HEAVY_MOST)


def zipf_100() -> IntArray:
    """Return waves of five minutes between 150 and 450 events/s; the partition at rank r has a share ∝ 1/r of them."""
    random = np.random.default_rng(ZIPF_SEED)
    totals = whole_events(300 - 150 * np.cos(2 * np.pi * np.arange(0.5, HARD_S) / 300))
    weights = random.permutation(1 / np.arange(1, ZIPF_PARTITIONS + 1))
    return np.asarray(random.multinomial(totals, weights / weights.sum()))


def hot_partition() -> IntArray:
    """Return nine partitions of 40 events/s; one has 240 for two minutes, more than any replica serves."""
    table = np.full((HARD_S, HOT_PARTITIONS), HOT_CALM)
    table[HOT_FROM_S:HOT_UNTIL_S, 4] = HOT_MOST
    return table


def zero_then_load() -> IntArray:
    """Return nothing for five minutes, 400 events/s for five at once, nothing for two, 300 to the end."""
    return np.repeat(np.array([0, 400, 0, 300]), (300, 300, 120, 180))


def behind_a_limit() -> IntArray:
    """Return 160 events/s, and every 150 s twenty seconds of 310."""
    return np.where(np.arange(HARD_S) % 150 < 130, 160, 310)
