"""The two clocks. Records are stamped by the wall clock, which may be set; durations rest on one that nobody sets."""

import time
from typing import Final

_STEADY: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def now_us() -> int:
    """Return microseconds since the epoch, UTC, by the wall clock."""
    return time.time_ns() // 1000


def monotonic_s() -> float:
    """Return seconds of CLOCK_BOOTTIME: never set, and running on while suspended (else CLOCK_MONOTONIC)."""
    return time.clock_gettime(_STEADY)


def wall_offset_s() -> float:
    """Return by how much the wall clock is ahead of the steady one, in seconds. It changes when somebody sets it."""
    return now_us() / 1e6 - monotonic_s()
