"""Whom to tell when partitions come and go: one call at a time, in the order in which things happened."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field

Told = Callable[[Sequence[int]], Awaitable[None]]


async def _nobody(partitions: Sequence[int]) -> None:
    """Tell nobody."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listeners:
    """Whom to tell about partitions, given in ascending order. What a listener raises ends the consumer."""

    on_partitions_taken: Told = _nobody
    """They are this replica's from now on; no event of them is handled before this returns."""
    on_partitions_released: Told = _nobody
    """They are finished and committed; nobody else gets them before this returns."""
    on_partitions_lost: Told = _nobody
    """They are, or will be, somebody else's without having been finished and committed: the group took this replica for
    dead, or it left while an event took too long or no broker answered. Their last events may be served again."""


@dataclass(slots=True)
class Calls:
    """Calls the listeners. Of each partition they hear by turns that it was taken, and that it was released or lost.

    What is told first is heard first, also where nobody waits for it. Each method returns a future that is done when
    the listener is.
    """

    listeners: Listeners
    _known: set[int] = field(default_factory=set)
    """Partitions that were told as taken, and not yet as released or lost."""
    _last: "asyncio.Future[None] | None" = None

    def taken(self, partitions: Iterable[int]) -> "asyncio.Future[None]":
        """Tell of those that are not known."""
        fresh = set(partitions) - self._known
        self._known |= fresh
        return self._call(self.listeners.on_partitions_taken, fresh)

    def released(self, partitions: Iterable[int]) -> "asyncio.Future[None]":
        """Tell of those that are known."""
        return self._call(self.listeners.on_partitions_released, self._forget(partitions))

    def lost(self, partitions: Iterable[int]) -> "asyncio.Future[None]":
        """Tell of those that are known."""
        return self._call(self.listeners.on_partitions_lost, self._forget(partitions))

    def _forget(self, partitions: Iterable[int]) -> set[int]:
        gone = self._known.intersection(partitions)
        self._known -= gone
        return gone

    def _call(self, listener: Told, partitions: set[int]) -> "asyncio.Future[None]":
        loop, before = asyncio.get_running_loop(), self._last
        if not partitions:
            nothing: asyncio.Future[None] = loop.create_future()
            nothing.set_result(None)
            return nothing

        async def turn() -> None:
            if before is not None and not before.done():
                await asyncio.wait([before])
            await listener(sorted(partitions))

        self._last = loop.create_task(turn())
        return self._last
