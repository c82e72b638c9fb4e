"""The two clocks. Records are stamped by the wall clock, which may be set; durations rest on one that nobody sets."""

import time
from typing import Final

_STEADY: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def now_us() -> int:
    """Return microseconds since the epoch, UTC, by the wall clock."""
    return time.time_ns() // 1000


def steady_s() -> float:
    """Return seconds since some moment in the past: never set, and going on while the machine is suspended.

    CLOCK_BOOTTIME; where the system has none, CLOCK_MONOTONIC, which a suspended machine stops.
    """
    return time.clock_gettime(_STEADY)
