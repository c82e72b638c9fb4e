"""What the replica writes: idempotent, acknowledged by all in-sync copies, many in flight at once."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
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

    async def send(self, topic: str, key: bytes | None, value: bytes, acknowledged: Callable[[], None]) -> None:
        """Hand one record to the producer; `acknowledged` is called once the broker has it."""
        future = await self._producer.send(topic, value=value, key=key)
        self._outstanding += 1
        self._drained.clear()

        def settled(sent: "asyncio.Future[Any]") -> None:
            self._outstanding -= 1
            if self._outstanding == 0:
                self._drained.set()
            if sent.cancelled():
                return
            if error := sent.exception():
                if not self._failed.done():
                    self._failed.set_exception(error)
            else:
                acknowledged()

        future.add_done_callback(settled)

    async def drained(self) -> None:
        """Wait until everything sent so far is acknowledged."""
        await self._drained.wait()

    async def stop(self) -> None:
        """Send what is left and disconnect."""
        await self._producer.stop()


async def require_topics(output: Output, topics: Iterable[str]) -> dict[str, int]:
    """Return topic → partition count, so that no first record has to wait for metadata."""
    return {topic: await output.partitions_of(topic) for topic in topics}
