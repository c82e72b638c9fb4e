"""Writes the progress reports of a replica. It needs them for nothing: without their topic it serves all the same."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

import msgspec
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

from contracts.progress import PROGRESS_INTERVAL_S, Progress
from services.consumer.connections import Client

log = logging.getLogger(__name__)

RETRY_BACKOFF_MS: Final = 500
"""Pause between two queries for a topic that is missing."""


class ProgressReporter:
    """Writes reports one at a time, with a producer of its own, so that no output waits for one."""

    snapshot: Callable[[], Progress]
    """Returns the report to write."""

    def __init__(self, connection: Mapping[str, Any], topic: str) -> None:
        self.producer = AIOKafkaProducer(**{**connection, "retry_backoff_ms": RETRY_BACKOFF_MS})
        Client.adopt(self.producer.client)
        self._topic = topic
        self._report_requested = asyncio.Event()
        self.lost = 0
        """Number of reports that could not be written."""
        self.problem = ""
        """Why the newest report could not be written. Empty: it was."""

    def report_now(self) -> None:
        """Write a report at once, because the replica's state has changed."""
        self._report_requested.set()

    async def run(self) -> None:
        """Write reports until cancelled."""
        while True:
            self._report_requested.clear()
            await self.report()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._report_requested.wait(), PROGRESS_INTERVAL_S)

    async def report(self) -> None:
        """Write one report, and return when the broker has it or it is lost."""
        progress = self.snapshot()
        try:
            await self.producer.send_and_wait(self._topic, msgspec.json.encode(progress), progress.replica.encode())
        except KafkaError as error:
            self.lost += 1
            if not self.problem:
                log.warning(
                    "Cannot write progress reports to %s (%r); events are served all the same", self._topic, error
                )
            self.problem = f"progress reports cannot be written to {self._topic}: {error!r}"
        else:
            self.problem = ""
