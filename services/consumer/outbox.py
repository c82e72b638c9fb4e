"""Outputs of handlers, kept back until they are committed together with the events that caused them."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextvars import ContextVar
from typing import Final, NamedTuple

from aiokafka.errors import MessageSizeTooLargeError

from services.common import traces
from services.consumer.interface import BatchHandler, Event, Later

MOST_BYTES: Final = 1_000_000  # of one record: a broker as it comes takes 1 MiB, its own fields included
EARLY_BYTES: Final = 1_000_000  # kept in all: above, it is committed before the interval is over …
FULL_BYTES: Final = 32_000_000  # … and above this handlers wait with what they write


class Record(NamedTuple):
    """One output."""

    topic: str
    key: bytes | None
    value: bytes
    headers: traces.Headers | None = None


_written: ContextVar[list[Record]] = ContextVar("written")
"""Outputs of the attempt under way. Tasks that a handler starts inherit them."""

Taking = tuple[int, int | None]
"""Partition, and the generation in which it was taken: what an earlier owner of this process did counts for nothing."""


class Outbox:
    """Keeps what an attempt has written when it succeeds, and forgets it when it fails."""

    def __init__(self) -> None:
        self._kept: dict[Taking, dict[int, list[Record]]] = {}
        self._bytes = 0
        self.is_early = asyncio.Event()
        """Set while so much is kept that it should be committed soon."""
        self._has_room = asyncio.Event()
        self._has_room.set()

    async def send(self, topic: str, key: bytes | None, value: bytes) -> "asyncio.Future[None]":
        """Note one record; the future is done at once. Waits while too much is kept.

        Raises RuntimeError outside a handler, MessageSizeTooLargeError.
        """
        try:
            written = _written.get()
        except LookupError:
            raise RuntimeError("with exactly_once only handlers may send: nothing else is committed with it") from None
        if (size := len(key or b"") + len(value)) > MOST_BYTES:
            raise MessageSizeTooLargeError(f"the record for {topic} has {size} bytes; at most {MOST_BYTES} are taken")
        await self._has_room.wait()
        written.append(Record(topic, key, value, traces.headers()))
        noted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        noted.set_result(None)
        return noted

    def handler(self, handle: BatchHandler) -> BatchHandler:
        """Return `handle` with what it writes kept under the last of its events."""

        async def kept(events: Sequence[Event]) -> Later:
            return await self._attempt(lambda: handle(events), events[-1])

        return kept

    def on_error(self, refuse: Callable[[Event, Exception], Awaitable[None]]) -> Callable[..., Awaitable[None]]:
        """Return `refuse` with what it writes kept under its event."""

        async def kept(event: Event, wrong: Exception) -> None:
            await self._attempt(lambda: refuse(event, wrong), event)

        return kept

    def due(self, taking: Taking, offset: int) -> list[Record]:
        """Return what events before `offset` have written, in their order."""
        kept = self._kept.get(taking, {})
        return [record for at in sorted(kept) if at < offset for record in kept[at]]

    def committed(self, offsets: Mapping[Taking, int]) -> None:
        """Forget what events before these offsets have written."""
        for taking, offset in offsets.items():
            kept = self._kept.get(taking, {})
            for at in [at for at in kept if at < offset]:
                self._forget(kept.pop(at))

    def keep_only(self, held: Collection[Taking]) -> None:
        """Forget what belongs to partitions that were lost."""
        for taking in self._kept.keys() - set(held):
            for records in self._kept.pop(taking).values():
                self._forget(records)

    async def _attempt(self, run: Callable[[], Awaitable[Later]], event: Event) -> Later:
        written: list[Record] = []
        token = _written.set(written)
        try:
            later = await run()
            if later is None or (isinstance(later, asyncio.Future) and _is_done(later)):
                self._keep(event, written)
                return None

            async def rest() -> None:
                await later
                self._keep(event, written)

            return asyncio.ensure_future(rest())  # now, so that it inherits where to note what it writes
        finally:
            _written.reset(token)

    def _keep(self, event: Event, written: list[Record]) -> None:
        kept = self._kept.setdefault((event.partition, event.generation), {})
        self._forget(kept.pop(event.offset, []))
        if written:
            kept[event.offset] = written
            self._weigh(written, 1)

    def _forget(self, records: list[Record]) -> None:
        self._weigh(records, -1)

    def _weigh(self, records: list[Record], sign: int) -> None:
        self._bytes += sign * sum(len(key or b"") + len(value) for _, key, value, _ in records)
        for flag, is_set in ((self.is_early, self._bytes >= EARLY_BYTES), (self._has_room, self._bytes < FULL_BYTES)):
            flag.set() if is_set else flag.clear()


def _is_done(later: "asyncio.Future[object]") -> bool:
    return later.done() and not later.cancelled() and later.exception() is None
