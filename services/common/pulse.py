"""Notices that the whole process stood still, as a stopped or suspended one does.

A copy of a stage that stands still for longer than its session is taken for dead: another copy has read back what it
wrote, and goes on in its place. Whatever it still has in hand would then be written a second time. So it writes nothing
after such a gap, and ends.
"""

import threading
from collections.abc import Callable
from typing import Final

from aiokafka.errors import KafkaError

from contracts.clock import steady_s

BEAT_S: Final = 0.25


class StoodStillError(KafkaError):  # type: ignore[misc]
    """The process stood still for too long, and may write nothing more."""


class Pulse(threading.Thread):
    """Beats while the process runs, whatever its event loops do. `start` it once."""

    def __init__(self, longest_s: float, clock: Callable[[], float] = steady_s) -> None:
        super().__init__(daemon=True, name="pulse")
        self._longest_s = longest_s
        self._clock = clock
        self._last_s = clock()
        self._stopped = threading.Event()
        self.gap_s = 0.0
        """Longest gap that was too long; 0 without one."""

    def run(self) -> None:
        """Beat until `end`."""
        while not self._stopped.wait(BEAT_S):
            self.beat()

    def end(self) -> None:
        """Beat no more."""
        self._stopped.set()

    def beat(self) -> None:
        """Notice how long ago the last beat was."""
        now_s = self._clock()
        if now_s - self._last_s > self._longest_s:
            self.gap_s = max(self.gap_s, now_s - self._last_s)
        self._last_s = now_s  # after the gap: two threads look at both

    def require(self) -> None:
        """Raise StoodStillError once the process has stood still for too long; also before the first beat after it."""
        self.beat()
        if self.gap_s:
            raise StoodStillError(self.told())

    def told(self) -> str:
        """Return what happened, in a sentence."""
        return (
            f"this process stood still for {self.gap_s:.1f} s, longer than its group waits for it: another copy may "
            "have taken over; restart me"
        )
