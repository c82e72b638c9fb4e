"""How a member knows that it still is one, and that a round is on.

The lease is self-fencing: who has not heard from the group for a session may be no member any more, and starts nothing
new. The prober asks where no plan says so and a heartbeat would be long in coming.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from aiokafka.errors import KafkaError

from contracts.clock import steady_s

log = logging.getLogger(__name__)

PROBE_S: Final = 0.4
"""How often a member asks. Plans are news by themselves; this is for what no plan announced: a member that asks to be
drained, comes, leaves, or whose session has run out."""
AFTER_ROUND_S: Final = (0.02, 0.06, 0.12)
"""Pauses before the first probes after a round: who came or left in the middle of it has made others join again, and
they wait for those that were through already."""
IN_DOUBT_S: Final = 0.05  # pause between probes while the lease is out: everything waits for the answer
GAP: Final = 1 / 3  # share of a session. A process that stood still for longer cannot know what it has missed
LOOKS: Final = 12  # in a session: how often the process looks whether it stands still

Clock = Callable[[], float]


class Lease:
    """Renewed by every answer that proves membership; out a session (`session_s`) after the last one was asked for.

    Not after it came: an answer may lie unread while the process is stopped, and by then prove nothing.

    Out sooner in two cases. A round ends at the latest `rebalance_timeout_s` after it began, and goes on without a
    member whose JoinGroup or SyncGroup has not arrived, though its heartbeats have: so that long after the last answer
    that knew of no round. And after a gap, in which the process stood still (SIGSTOP, a suspended machine, a handler
    that did not let go of the CPU) for a third of a session: until an answer comes that was asked for after it.

    The broker refuses a zombie's commits; the lease keeps it from producing output a second time.
    """

    def __init__(self, session_s: float, rebalance_timeout_s: float, clock: Clock = steady_s) -> None:
        self._session_s = session_s
        self._rebalance_timeout_s = rebalance_timeout_s
        self._clock = clock
        self._renewed_s = self._no_round_s = self._looked_s = clock()
        self._gap_ended_s = self._looked_s
        self._news = asyncio.Event()

    def now_s(self) -> float:
        """Return the time by the lease's clock."""
        return self._clock()

    def renew(self, asked_s: float, *, in_round: bool = False) -> None:
        """The group has confirmed the membership. asked_s: when it was asked (of `now_s`).

        in_round: a round may have been on that had not heard from this member yet.
        """
        self._renewed_s = max(self._renewed_s, asked_s)
        if not in_round:
            self._no_round_s = max(self._no_round_s, asked_s)
        self._news.set()

    @property
    def age_s(self) -> float:
        """How long ago the group was asked that has confirmed the membership last."""
        return self._clock() - self._renewed_s

    @property
    def is_out(self) -> bool:
        """Whether the group may have given this member's partitions to others."""
        now_s = self._look()
        ends_s = min(self._renewed_s + self._session_s, self._no_round_s + self._rebalance_timeout_s)
        return self._renewed_s < self._gap_ended_s or now_s > ends_s

    async def held(self) -> None:
        """Return at once while the lease runs; wait for its renewal when it is out."""
        while self.is_out:
            self._news.clear()
            await self._news.wait()

    async def watch(self) -> None:
        """Notice gaps, until cancelled: whoever looks next after one sees how long ago this last did."""
        while True:
            self._look()
            await asyncio.sleep(self._session_s / LOOKS)

    def _look(self) -> float:
        now_s = self._clock()
        if now_s - self._looked_s > self._session_s * GAP:
            log.warning("this process stood still for %.1f s; it asks whether it is a member", now_s - self._looked_s)
            self._gap_ended_s = now_s
        self._looked_s = now_s
        return now_s


class Prober:
    """`ask` is a heartbeat; what it learns reaches the group's member by itself."""

    def __init__(self, ask: Callable[[], Awaitable[None]], lease: Lease) -> None:
        self._ask = ask
        self._lease = lease
        self._completed = asyncio.Event()

    def round_completed(self) -> None:
        """Ask soon, and a few times."""
        self._completed.set()

    async def run(self) -> None:
        """Ask until cancelled."""
        pauses = iter(AFTER_ROUND_S)
        while True:
            try:
                pause_s = IN_DOUBT_S if self._lease.is_out else next(pauses, PROBE_S)
                await asyncio.wait_for(self._completed.wait(), pause_s)
            except TimeoutError:
                try:
                    await self._ask()
                except KafkaError as refused:
                    log.info("probe: %r", refused)  # the next heartbeat meets the same and deals with it
            else:
                self._completed.clear()
                pauses = iter(AFTER_ROUND_S)
