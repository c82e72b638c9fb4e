"""The live loop: ticks on the beat of the wall clock, and in between the steps that are due."""

import math
import time
from collections.abc import Callable
from threading import Event
from typing import Final

STEP_S: Final = 0.02
"""How often what has happened to replicas is looked at between ticks: a replica that dies or asks to be drained waits
so long, and for the writing of the plan, until the others take over."""


def next_tick_s(now_s: float, interval_s: float, offset_s: float) -> float:
    """Return the first k·interval + offset after `now_s`, seconds since the epoch. A missed beat is not made up for.

    >>> next_tick_s(10.05, interval_s=1.0, offset_s=0.1)
    10.1
    """
    return (math.floor((now_s - offset_s) / interval_s) + 1) * interval_s + offset_s


class Loop:
    """Runs until `stop` is set."""

    def __init__(
        self,
        tick: Callable[[], None],
        advance: Callable[[], None],
        *,
        interval_s: float,
        offset_s: float,
        stop: Event,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._tick = tick
        self._advance = advance
        self._interval_s = interval_s
        self._offset_s = offset_s
        self._stop = stop
        self._clock = clock
        self.ticks = 0
        self._last_tick_s = clock()

    def run(self) -> None:
        """Tick and advance; whatever they raise ends the loop."""
        due_s = next_tick_s(self._clock(), self._interval_s, self._offset_s)
        while not self._stop.wait(max(0.0, min(STEP_S, due_s - self._clock()))):
            if self._clock() >= due_s:
                self._tick()
                self.ticks += 1
                self._last_tick_s = self._clock()
                due_s = next_tick_s(self._clock(), self._interval_s, self._offset_s)
            self._advance()

    def last_tick(self) -> tuple[int, float]:
        """Return how many ticks there were and the age of the last one in seconds."""
        return self.ticks, self._clock() - self._last_tick_s
