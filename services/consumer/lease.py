"""A member's lease: the proof that it is still in the group, and extra heartbeats to renew it.

The lease fences the replica itself. If the group has not answered for `session_s`, it may have removed the replica. So
the replica starts no further event. `Prober` sends extra heartbeats, as Kafka's own notice unplanned changes too late.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from aiokafka.errors import KafkaError

from contracts.clock import monotonic_s

log = logging.getLogger(__name__)

PROBE_INTERVAL_S: Final = 0.4
"""Pause between two probes, seconds. A probe finds changes that no plan announced: a member that joins, leaves, drains,
or whose session has expired."""
PROBE_PAUSES_AFTER_REBALANCE_S: Final = (0.02, 0.06, 0.12)
"""Pauses before the first probes after a rebalance, seconds. If a member joined or left during the rebalance, others
join again and wait for the members that had finished."""
EXPIRED_PROBE_INTERVAL_S: Final = 0.05  # while the lease is expired, all events wait for the answer
MAX_GAP_SESSIONS: Final = 1 / 3  # a process that stood still for longer may have been removed
CHECKS_PER_SESSION: Final = 12
FAST_CHECKS_PER_SESSION: Final = 1000  # between two of them, a check for each event costs only a reading of the clock


class Lease:
    """A lease that is valid for `session_s` seconds. Each answer that proves the membership renews it.

    The new lease begins when the request was sent, because an answer may wait unread while the process is stopped.

    The lease expires sooner in two cases:
    - `rebalance_timeout_s` after the last request whose answer showed that no rebalance was in progress. A rebalance
      completes after this time without the members that did not join it, even if they send heartbeats.
    - After a gap: the process stood still for more than a third of `session_s` (SIGSTOP, a suspended machine, a handler
      that blocks the CPU). The lease is valid again with the first answer to a request sent after the gap.

    The broker refuses the commits of a removed member. The lease keeps that member from repeating outputs.
    """

    def __init__(self, session_s: float, rebalance_timeout_s: float, clock: Callable[[], float] = monotonic_s) -> None:
        self._session_s, self._rebalance_timeout_s, self._clock = session_s, rebalance_timeout_s, clock
        self._renewed_s = self._no_rebalance_s = self._last_check_s = clock()
        self._gap_ended_s = self._last_check_s
        self._check_again_s = 0.0  # the lease is surely valid until then
        self._renewed = asyncio.Event()

    def now_s(self) -> float:
        """Return the time of the lease's clock."""
        return self._clock()

    def renew(self, sent_s: float, *, in_rebalance: bool = False) -> None:
        """Renew the lease, because the group has confirmed the membership.

        sent_s: when the request was sent, by `now_s`. in_rebalance: a rebalance may be waiting for this member.
        """
        self._renewed_s = max(self._renewed_s, sent_s)
        if not in_rebalance:
            self._no_rebalance_s = max(self._no_rebalance_s, sent_s)
        self._renewed.set()

    @property
    def age_s(self) -> float:
        """Seconds since the last request by which the group confirmed the membership."""
        return self._clock() - self._renewed_s

    @property
    def is_expired(self) -> bool:
        """Whether the group may have given this member's partitions to others."""
        if self._clock() < self._check_again_s:
            return False
        now_s = self._check_gap()
        ends_s = min(self._renewed_s + self._session_s, self._no_rebalance_s + self._rebalance_timeout_s)
        fast_s = self._session_s / FAST_CHECKS_PER_SESSION
        self._check_again_s = 0.0 if self._renewed_s < self._gap_ended_s else min(ends_s, now_s + fast_s)
        return now_s > self._check_again_s

    async def wait_until_valid(self) -> None:
        """Return at once while the lease is valid. If it is expired, wait for its renewal."""
        while self.is_expired:
            self._renewed.clear()
            await self._renewed.wait()

    async def watch(self) -> None:
        """Record the time regularly until cancelled, so that the next check notices a gap."""
        while True:
            self._check_gap()
            await asyncio.sleep(self._session_s / CHECKS_PER_SESSION)

    def _check_gap(self) -> float:
        now_s = self._clock()
        gap_s = now_s - self._last_check_s
        if gap_s > self._session_s * MAX_GAP_SESSIONS:
            log.warning("The process stood still for %.1f s; waiting for the group to confirm the membership", gap_s)
            self._gap_ended_s = now_s
        self._last_check_s = now_s
        return now_s


class Prober:
    """Sends extra heartbeats. `send_heartbeat` applies the answer to the membership itself."""

    def __init__(
        self, send_heartbeat: Callable[[], Awaitable[None]], lease: Lease, slowdown: Callable[[], float]
    ) -> None:
        self._send_heartbeat, self._lease, self._slowdown = send_heartbeat, lease, slowdown
        self.rebalance_completed = asyncio.Event()
        """Set after a rebalance: then the next probes come soon."""

    async def run(self) -> None:
        """Probe until cancelled."""
        pauses = iter(PROBE_PAUSES_AFTER_REBALANCE_S)
        while True:
            try:
                pause_s = next(pauses, PROBE_INTERVAL_S) * self._slowdown()
                pause_s = EXPIRED_PROBE_INTERVAL_S if self._lease.is_expired else pause_s
                async with asyncio.timeout(pause_s):
                    await self.rebalance_completed.wait()
            except TimeoutError:
                try:
                    await self._send_heartbeat()
                except KafkaError as error:
                    log.info("Probe failed: %r", error)  # the next heartbeat gets the same error and handles it
            else:
                self.rebalance_completed.clear()
                pauses = iter(PROBE_PAUSES_AFTER_REBALANCE_S)
