"""Stores outputs of handlers until they are committed together with their events (exactly once)."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextvars import ContextVar
from typing import Final, NamedTuple

from aiokafka.errors import MessageSizeTooLargeError

from services.common import traces
from services.consumer.interface import BatchHandler, Completion, Event

MAX_RECORD_BYTES: Final = 1_000_000  # a broker accepts 1 MiB by default, including its own fields
EARLY_COMMIT_BYTES: Final = 1_000_000  # stored bytes at which a commit is made before its interval is over
MAX_STORED_BYTES: Final = 32_000_000  # stored bytes at which `send` waits for a commit


class Record(NamedTuple):
    """One output."""

    topic: str
    key: bytes | None
    value: bytes
    headers: traces.Headers | None = None


_written: ContextVar[list[Record]] = ContextVar("written")
"""Outputs of the current attempt. Tasks that a handler starts inherit the list."""

OwnedPartition = tuple[int, int | None]
"""Partition, and the generation in which it was taken. Outputs of an earlier generation are discarded."""


class Outbox:
    """Stores the outputs of each attempt that succeeds, and discards those of an attempt that fails.

    early_commit: set whenever at least EARLY_COMMIT_BYTES are stored.
    """

    def __init__(self, early_commit: asyncio.Event) -> None:
        self._early_commit = early_commit
        self._outputs: dict[OwnedPartition, dict[int, list[Record]]] = {}
        self._bytes = 0
        self._has_space = asyncio.Event()
        self._has_space.set()

    async def send(self, topic: str, key: bytes | None, value: bytes) -> "asyncio.Future[None]":
        """Add one record to the current attempt. The returned future is already done. Waits while the outbox is full.

        Raises RuntimeError outside a handler, and MessageSizeTooLargeError.
        """
        try:
            written = _written.get()
        except LookupError:
            raise RuntimeError("with exactly_once only handlers may send; outputs are committed with events") from None
        if (size := len(key or b"") + len(value)) > MAX_RECORD_BYTES:
            raise MessageSizeTooLargeError(f"the record for {topic} has {size} bytes (maximum {MAX_RECORD_BYTES})")
        await self._has_space.wait()
        written.append(Record(topic, key, value, traces.headers()))
        stored: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        stored.set_result(None)
        return stored

    def wrap_handler(self, handle: BatchHandler) -> BatchHandler:
        """Return a handler that calls `handle` and stores its outputs under the offset of the last event."""

        async def wrapped(events: Sequence[Event]) -> Completion:
            return await self._collect_outputs(lambda: handle(events), events[-1])

        return wrapped

    def wrap_on_error(self, on_error: Callable[[Event, Exception], Awaitable[None]]) -> Callable[..., Awaitable[None]]:
        """Return a callback that calls `on_error` and stores its outputs under the event's offset."""

        async def wrapped(event: Event, error: Exception) -> None:
            await self._collect_outputs(lambda: on_error(event, error), event)

        return wrapped

    def outputs_before(self, partition: OwnedPartition, offset: int) -> list[Record]:
        """Return the outputs of events before `offset`, in the order of the events."""
        outputs = self._outputs.get(partition, {})
        return [record for at in sorted(outputs) if at < offset for record in outputs[at]]

    def discard_before(self, offsets: Mapping[OwnedPartition, int]) -> None:
        """Discard the outputs of events before these offsets, because they are committed."""
        for partition, offset in offsets.items():
            outputs = self._outputs.get(partition, {})
            for at in [at for at in outputs if at < offset]:
                self._count_bytes(outputs.pop(at), -1)

    def retain(self, owned: Collection[OwnedPartition]) -> None:
        """Discard the outputs of partitions that are not in `owned`."""
        for partition in self._outputs.keys() - set(owned):
            for records in self._outputs.pop(partition).values():
                self._count_bytes(records, -1)

    async def _collect_outputs(self, run: Callable[[], Awaitable[Completion]], event: Event) -> Completion:
        written: list[Record] = []
        token = _written.set(written)
        try:
            completion = await run()
            if completion is None or (isinstance(completion, asyncio.Future) and _is_done(completion)):
                self._store(event, written)
                return None

            async def rest() -> None:
                await completion
                self._store(event, written)

            return asyncio.ensure_future(rest())  # started here, so that it inherits `_written`
        finally:
            _written.reset(token)

    def _store(self, event: Event, written: list[Record]) -> None:
        outputs = self._outputs.setdefault((event.partition, event.generation), {})
        self._count_bytes(outputs.pop(event.offset, []), -1)
        if written:
            outputs[event.offset] = written
            self._count_bytes(written, 1)

    def _count_bytes(self, records: list[Record], sign: int) -> None:
        self._bytes += sign * sum(len(key or b"") + len(value) for _, key, value, _ in records)
        if self._bytes >= EARLY_COMMIT_BYTES:
            self._early_commit.set()
        self._has_space.set() if self._bytes < MAX_STORED_BYTES else self._has_space.clear()


def _is_done(completion: "asyncio.Future[object]") -> bool:
    return completion.done() and not completion.cancelled() and completion.exception() is None
