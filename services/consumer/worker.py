"""The worker loop: one event at a time, each served to the running deadline, its output sent before it counts."""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any, Final

from aiokafka.errors import (
    GroupAuthorizationFailedError,
    KafkaError,
    TopicAuthorizationFailedError,
    UnsupportedVersionError,
)

from contracts.topics import qualified
from services.consumer.event import Event, Handler
from services.consumer.inbox import Inbox
from services.consumer.ledger import Ledger
from services.consumer.output import Output
from services.consumer.pace import Pace

log = logging.getLogger(__name__)

POLL_MS: Final = 1000
"""A poll ends as soon as something is there."""
TROUBLE_S: Final = 0.2
"""aiokafka has waited for its own retries already; this keeps a lasting trouble from turning into a busy loop."""
FATAL: Final = (GroupAuthorizationFailedError, TopicAuthorizationFailedError, UnsupportedVersionError)


def now_us() -> int:
    """Return microseconds since the epoch."""
    return time.time_ns() // 1000


class Worker:
    """Serves what the inbox holds. `pause` returns when no event is in flight; `resume` begins an assignment."""

    def __init__(
        self, *, consumer: Any, output: Output, handler: Handler, service_time_s: float, namespace: str, topic: str
    ) -> None:
        self._consumer = consumer
        self._output = output
        self._handler = handler
        self._namespace = namespace
        self._topic = topic
        self._pace = Pace(service_time_s)
        self._ledger = Ledger()
        self._epoch = 0
        self._free = asyncio.Event()
        self._free.set()
        self.inbox = Inbox()
        self.processed = 0

    @property
    def busy_us(self) -> int:
        """Time spent serving since the start."""
        return int(self._pace.busy_s * 1_000_000)

    async def pause(self) -> None:
        """Take no further event; return when the one in flight is finished and every output is acknowledged."""
        self.inbox.close()
        await self._free.wait()
        await self._output.drained()

    def resume(self, partitions: tuple[int, ...], kept: set[int], ledger: Ledger, epoch: int) -> None:
        """Serve `partitions`; what the inbox holds of those in `kept` is still valid."""
        self._ledger = ledger
        self._epoch = epoch
        self.inbox.open(partitions, kept)

    async def poll(self) -> None:
        """Fill the inbox until cancelled."""
        while True:
            await self.inbox.space()
            try:
                batches = await self._consumer.getmany(timeout_ms=POLL_MS)
            except KafkaError as trouble:
                if isinstance(trouble, FATAL) or self._consumer._coordinator._coordination_task.done():
                    raise
                log.warning("polling is interrupted: %s", trouble)
                await asyncio.sleep(TROUBLE_S)
                continue
            received_us = now_us()
            for at, records in batches.items():
                self.inbox.put(at.partition, records, received_us)

    async def serve(self) -> None:
        """Serve until cancelled. Call `pause` first: an event cut off here is neither finished nor committed."""
        clock: Callable[[], float] = asyncio.get_running_loop().time
        idle = True
        while True:
            entry = self.inbox.take()
            if entry is None:
                idle = True
                await self.inbox.filled()
                continue
            self._free.clear()
            ledger, epoch = self._ledger, self._epoch  # of this assignment, however long the service takes
            finish_s = self._pace.begin(clock(), idle=idle)
            idle = False
            await asyncio.sleep(max(0.0, finish_s - clock()))
            await self._finish(*entry, ledger, epoch)
            self._free.set()

    async def _finish(self, record: Any, received_us: int, ledger: Ledger, epoch: int) -> None:
        event = Event(self._topic, record.partition, record.offset, record.key, record.value, received_us, epoch)
        outgoing = self._handler(event, now_us())
        ledger.served(event.partition, event.offset)
        self.processed += 1
        await self._output.send(
            qualified(self._namespace, outgoing.topic),
            outgoing.key,
            outgoing.value,
            lambda: ledger.acknowledged(event.partition, event.offset),
        )
