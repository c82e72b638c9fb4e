"""Asks the group whether a round is on, where no plan says so and a heartbeat would be long in coming."""

import asyncio
import logging
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
