"""New York's taxi trips of January 2013, 40 times faster (CLOSER 2024, figure 3), as a closed form.

The published trace has no licence; this is a harmonic fit of its curve (rmse 8.8 events/s) without its first minute.
"""

from typing import Final

import numpy as np

from loadgen.curves import FloatArray, IntArray, whole_events

DURATION_S: Final = 7207
MEAN: Final = 228.7
"""Events/s."""
DAY_S: Final = 2160.0
"""A real hour is 90 s."""
DAILY: Final = (
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
TREND: Final = (
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


def taxi() -> IntArray:
    """Return the events of each second: ⌈rate⌉ at whole seconds, the rate never below 0."""
    t = np.arange(DURATION_S, dtype=np.float64)
    rate = MEAN + _harmonics(t, DAY_S, DAILY) + _harmonics(t, float(DURATION_S), TREND)
    return whole_events(np.maximum(0.0, rate))


def _harmonics(t: FloatArray, period_s: float, weights: tuple[tuple[float, float], ...]) -> FloatArray:
    """Return Σ a·cos(2πkt/period) + b·sin(2πkt/period) over k = 1, 2, …"""
    cosine, sine = np.array(weights).T
    angle = 2 * np.pi * np.outer(t, np.arange(1, len(weights) + 1)) / period_s
    return np.asarray(np.cos(angle) @ cosine + np.sin(angle) @ sine)
