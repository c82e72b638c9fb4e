"""Self-fencing: who has not heard from the group for a session may be no member any more, and starts nothing new."""

import asyncio
import time
from collections.abc import Callable

Clock = Callable[[], float]


class Lease:
    """Renewed by every answer that proves membership; out a session (`session_s`) after the last one was asked for.

    Not after it came: an answer may lie unread while the process is stopped, and by then prove nothing.

    A process that was stopped (SIGSTOP, a suspended machine) wakes up with events in its queue that others have served
    meanwhile. The broker refuses its commits; this keeps it from producing their output a second time.
    """

    def __init__(self, session_s: float, clock: Clock = time.monotonic) -> None:
        self._session_s = session_s
        self._clock = clock
        self._renewed_s = clock()
        self._news = asyncio.Event()
        self.waits = False
        """While a round is on, the broker keeps a member that waits, and says nothing."""

    def now_s(self) -> float:
        """Return the time by the lease's clock."""
        return self._clock()

    def renew(self, asked_s: float) -> None:
        """The group has confirmed the membership. asked_s: when it was asked (of `now_s`)."""
        self._renewed_s = max(self._renewed_s, asked_s)
        self._news.set()

    @property
    def is_out(self) -> bool:
        """Whether a session has passed without a word."""
        return not self.waits and self._clock() - self._renewed_s > self._session_s

    async def held(self) -> None:
        """Return at once while the lease runs; wait for its renewal when it is out."""
        while self.is_out:
            self._news.clear()
            await self._news.wait()
