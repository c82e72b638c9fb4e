"""Two clocks. The wall clock timestamps records and may jump. Durations use the monotonic clock, which never jumps."""

import time
from typing import Final

_MONOTONIC: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def now_us() -> int:
    """Return the time of the wall clock in microseconds since the epoch (UTC)."""
    return time.time_ns() // 1000


def monotonic_s() -> float:
    """Return the monotonic clock, seconds: CLOCK_BOOTTIME (counts suspended time) or, if missing, CLOCK_MONOTONIC."""
    return time.clock_gettime(_MONOTONIC)


def wall_offset_s() -> float:
    """Return the wall clock minus the monotonic clock, seconds. It changes only if the wall clock is set."""
    return now_us() / 1e6 - monotonic_s()
