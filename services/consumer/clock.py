"""The wall clock, as records carry it."""

import time


def now_us() -> int:
    """Return microseconds since the epoch."""
    return time.time_ns() // 1000
