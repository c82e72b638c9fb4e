"""One server whose service times are kept on a running deadline."""

import asyncio
from typing import Final

from contracts.clock import now_us

CATCH_UP_S: Final = 0.1
"""How far a busy server may lag behind its deadlines and still make it up. A timer's rounding (1 ms) and a busy loop
are made up; after a longer freeze of the process no burst is served faster than a real server could."""


class Pace:
    """Deadlines of one server: next = max(previous, now if idle) + service time, so that μ = 1 / service time.

    A deadline for each event alone would lose up to 1 ms to the event loop's rounding: 190 events/s instead of 200.
    """

    __slots__ = ("_deadline_s", "busy_s")

    def __init__(self) -> None:
        self._deadline_s = 0.0
        self.busy_s = 0.0
        """Time spent serving, on the running deadline: a sleep's rounding, made up by the next event, is not in it."""

    def begin(self, now_s: float, service_time_s: float, *, idle: bool) -> float:
        """Start one event and return when it shall be finished. `idle`: nothing was waiting when the last one ended."""
        start_s = max(self._deadline_s, now_s if idle else now_s - CATCH_UP_S)
        finish_s = start_s + service_time_s
        self.busy_s += finish_s - (start_s if idle else self._deadline_s)
        self._deadline_s = finish_s
        return finish_s


class Server:
    """Serves one event after the other, each for its service time."""

    def __init__(self) -> None:
        self._pace = Pace()
        self._last_done_us = 0

    @property
    def busy_s(self) -> float:
        """Time spent serving, seconds."""
        return self._pace.busy_s

    async def serve(self, received_us: int, service_time_s: float) -> int:
        """Return, epoch µs, when the event that was polled at `received_us` has been served."""
        clock = asyncio.get_running_loop().time
        finish_s = self._pace.begin(clock(), service_time_s, idle=received_us > self._last_done_us)
        await asyncio.sleep(max(0.0, finish_s - clock()))
        self._last_done_us = now_us()
        return self._last_done_us
