"""What the replica writes: idempotent, acknowledged by all in-sync copies, many in flight at once."""

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from aiokafka import AIOKafkaProducer

REQUEST_TIMEOUT_MS: Final = 120_000
"""How long an output may wait for a leader before the replica gives up; none of it has been committed."""


class Output:
    """A producer that counts what is not yet acknowledged. The first output that fails for good sets `failed`."""

    def __init__(self, connection: Mapping[str, Any], failed: "asyncio.Future[None]") -> None:
        self._producer = AIOKafkaProducer(
            **connection, acks="all", enable_idempotence=True, linger_ms=0, request_timeout_ms=REQUEST_TIMEOUT_MS
        )
        self._failed = failed
        self._outstanding = 0
        self._drained = asyncio.Event()
        self._drained.set()

    async def start(self) -> None:
        """Connect. May be called again after an error."""
        await self._producer.start()

    async def partitions_of(self, topic: str) -> int:
        """Return how many partitions `topic` has. Raises KafkaError when it does not exist."""
        return len(await self._producer.partitions_for(topic))

    async def send(self, topic: str, key: bytes | None, value: bytes) -> "asyncio.Future[None]":
        """Hand one record to the producer; the future is done once the broker has it."""
        future: asyncio.Future[None] = await self._producer.send(topic, value=value, key=key)
        self._outstanding += 1
        self._drained.clear()
        future.add_done_callback(self._settled)
        return future

    async def drained(self) -> None:
        """Wait until everything sent so far is acknowledged."""
        await self._drained.wait()

    async def stop(self) -> None:
        """Send what is left and disconnect."""
        await self._producer.stop()

    def _settled(self, sent: "asyncio.Future[None]") -> None:
        self._outstanding -= 1
        if self._outstanding == 0:
            self._drained.set()
        if not sent.cancelled() and (error := sent.exception()) and not self._failed.done():
            self._failed.set_exception(error)
