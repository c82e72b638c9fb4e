"""How a member knows that it still is one, and that a round is on.

The lease is self-fencing: who has not heard from the group for a session may be no member any more, and starts nothing
new. The prober asks where no plan says so and a heartbeat would be long in coming.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Final

from aiokafka.errors import KafkaError

log = logging.getLogger(__name__)

PROBE_S: Final = 0.4
"""How often a member asks. Plans are news by themselves; this is for what no plan announced: a member that asks to be
drained, comes, leaves, or whose session has run out."""
AFTER_ROUND_S: Final = (0.02, 0.06, 0.12)
"""Pauses before the first probes after a round: who came or left in the middle of it has made others join again, and
they wait for those that were through already."""

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


class Prober:
    """`ask` is a heartbeat; what it learns reaches the group's member by itself."""

    def __init__(self, ask: Callable[[], Awaitable[None]]) -> None:
        self._ask = ask
        self._completed = asyncio.Event()

    def round_completed(self) -> None:
        """Ask soon, and a few times."""
        self._completed.set()

    async def run(self) -> None:
        """Ask until cancelled."""
        pauses = iter(AFTER_ROUND_S)
        while True:
            try:
                await asyncio.wait_for(self._completed.wait(), next(pauses, PROBE_S))
            except TimeoutError:
                try:
                    await self._ask()
                except KafkaError as refused:
                    log.info("probe: %r", refused)  # the next heartbeat meets the same and deals with it
            else:
                self._completed.clear()
                pauses = iter(AFTER_ROUND_S)
