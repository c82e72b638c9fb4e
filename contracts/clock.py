"""Two clocks: the wall clock timestamps records and may be set; durations use the monotonic clock."""

import time
from typing import Final

_MONOTONIC: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def now_us() -> int:
    """Return the wall clock: microseconds since the epoch, UTC."""
    return time.time_ns() // 1000


def monotonic_s() -> float:
    """Return seconds of CLOCK_BOOTTIME, which also counts suspended time (without it: CLOCK_MONOTONIC)."""
    return time.clock_gettime(_MONOTONIC)


def wall_offset_s() -> float:
    """Return wall clock minus monotonic clock, in seconds. It changes only if the wall clock is set."""
    return now_us() / 1e6 - monotonic_s()
