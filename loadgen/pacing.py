"""The pacer sends every event at its intended time or later, never earlier, and records the lateness.

It is an open loop. A slow send makes the next event late, which is recorded, but the schedule never moves.
"""

from collections import deque
from collections.abc import Callable, Iterator
from typing import Final

import numpy as np

from loadgen.orders import Event, Record
from loadgen.shapes import IntArray

MAX_PREPARE_AHEAD_US: Final = 3_000_000
"""How long before its send time an event may be prepared, µs. A burst is ready in time, and memory is bounded."""
MIN_PREPARE_TIME_US: Final = 2_000
"""No event is prepared if the next one is due within this time, µs."""
LONGEST_PAUSE_S: Final = 0.02
"""Longest single pause, seconds, so that delivery reports are processed and a stop is noticed."""
SHORTEST_PAUSE_S: Final = 0.0003
"""Shortest pause, seconds. At 20,000 events/s the pacer does not sleep between two events but sends several at once."""
MAX_EVENTS_PER_TURN: Final = 500
"""Most events in one turn, before other greenlets run. It exceeds any burst, so it only limits catching up."""


class Pacer:
    """Sends the events of one run. now_us: the wall clock. pause: lets other greenlets run for some seconds."""

    def __init__(
        self,
        offset_us: IntArray,
        source: Iterator[Event],
        *,
        started_us: int,
        send: Callable[[Record], None],
        now_us: Callable[[], int],
        pause: Callable[[float], None],
    ) -> None:
        self._offset_us, self._started_us, self._source = offset_us, started_us, source
        self._ready: deque[Event] = deque()
        self._send, self._now_us, self._pause = send, now_us, pause
        self._lateness_us = np.zeros(len(offset_us), dtype=np.int64)
        self.sent = 0

    @property
    def lateness_us(self) -> IntArray:
        """Send time − due time of every event sent so far, µs."""
        return self._lateness_us[: self.sent]

    def replace(self, offset_us: IntArray, source: Callable[[int], Iterator[Event]]) -> None:
        """Replace the events that are not prepared. source: yields the events from a place in `offset_us` on."""
        self._lateness_us = np.concatenate([self.lateness_us, np.zeros(len(offset_us) - self.sent, np.int64)])
        self._offset_us, self._source = offset_us, source(self.sent + len(self._ready))

    def run(self) -> None:
        """Send all events. Return when the last event was passed to `send`."""
        while self.sent < len(self._offset_us):
            self._send_due()
            self._prepare()
            self._pause(self._idle_s())

    def _send_due(self) -> None:
        stop = min(self.sent + MAX_EVENTS_PER_TURN, len(self._offset_us))
        ready, source, clock, send = self._ready, self._source, self._now_us, self._send
        for intended_us in (self._offset_us[self.sent : stop] + self._started_us).tolist():
            now_us = clock()
            if now_us < intended_us:
                return
            event = ready.popleft() if ready else next(source)
            send(event(now_us))
            self._lateness_us[self.sent] = now_us - intended_us
            self.sent += 1

    def _prepare(self) -> None:
        while (following := self.sent + len(self._ready)) < len(self._offset_us):
            now_us = self._now_us()
            is_too_early = self._intended_us(following) > now_us + MAX_PREPARE_AHEAD_US
            if is_too_early or self._intended_us(self.sent) < now_us + MIN_PREPARE_TIME_US:
                return
            self._ready.append(next(self._source))

    def _intended_us(self, number: int) -> int:
        return self._started_us + int(self._offset_us[number])

    def _idle_s(self) -> float:
        if self.sent == len(self._offset_us):
            return 0.0
        until_next_us = self._intended_us(self.sent) - self._now_us()
        return 0.0 if until_next_us <= 0 else min(max(until_next_us / 1e6, SHORTEST_PAUSE_S), LONGEST_PAUSE_S)
