"""The workloads of the autoscaling papers, except the taxi trips. Sources: CLOSER 2024 figures 2 and 6; ICCBDC 2022."""

from typing import Final

import numpy as np

from loadgen.curves import IntArray, Knots, half_cosine, whole_events

W1_KNOTS: Final[Knots] = ((0, 0), (125, 200), (212.5, 150), (300, 275), (387.5, 150), (475, 350), (600, 0))
W3_RAMPS_S: Final = (120, 120, 240, 360)
"""When partitions 0 to 3 of W3 begin to grow; partition 4 never does."""
W4_SHARES: Final = (0.27, 0.27, 0.153, 0.153, 0.153)


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
