"""A pause that ends on time: gevent's own ends at a whole millisecond of its event loop, up to one too late."""

import time
from typing import Final

import gevent
from gevent.monkey import get_original

_sleep: Final = get_original("time", "sleep")
LOOP_S: Final = 0.002
"""The last of each pause, which the process sleeps as a whole; the kernel wakes it within 0.1 ms."""


def pause(pause_s: float) -> None:
    """Let others run for so many seconds, and be back in time: the last two milliseconds nobody runs."""
    until_s = time.perf_counter() + pause_s
    gevent.sleep(max(pause_s - LOOP_S, 0))
    if (left_s := until_s - time.perf_counter()) > 0:
        _sleep(left_s)
