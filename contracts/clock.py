"""The wall clock by which all records are stamped."""

import time


def now_us() -> int:
    """Return microseconds since the epoch, UTC."""
    return time.time_ns() // 1000
