"""One partition while it is held: what waits, what is being handled, what may be committed.

A lane is its own token: whoever works on an event keeps the lane, and a lane that was dropped counts for nothing any
more, also when the same partition is taken again.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Any


class Lane:
    """Offsets only grow; an event may be committed once all before it are done."""

    __slots__ = (
        "_committed",
        "_done",
        "_idle",
        "_keys",
        "_next",
        "_since",
        "_unfinished",
        "epoch",
        "expected",
        "is_open",
        "paused",
        "queue",
        "running",
    )

    def __init__(self, offset: int | None, epoch: int) -> None:
        self.queue: deque[tuple[Any, int]] = deque()
        """Records and when each was polled (µs)."""
        self.expected = offset
        """Offset after the last record fetched; None until anything is known."""
        self.epoch = epoch
        self.is_open = True
        self.paused = False
        self.running = 0
        """Handlers at work."""
        self._keys: set[bytes] = set()
        self._unfinished: deque[int] = deque()
        self._done: set[int] = set()
        self._next = offset
        self._committed = offset
        self._since = offset
        self._idle = asyncio.Event()
        self._idle.set()

    def put(self, records: Sequence[Any], received_us: int) -> None:
        """Add what was polled. Records that were there before are left out."""
        least = -1 if self.expected is None else self.expected
        self.queue.extend((record, received_us) for record in records if record.offset >= least)
        if records:
            self.expected = max(least, records[-1].offset + 1)

    def may_start(self, most: int) -> bool:
        """Return whether its next event may be started beside those that are running."""
        if not self.is_open or self.paused or not self.queue or self.running >= most:
            return False
        return self.running == 0 or self.queue[0][0].key not in self._keys

    def start(self, most: int) -> list[tuple[Any, int]]:
        """Take what comes next: up to `most`, and no key that another handler is at work on. Unfinished from now on."""
        taken: list[tuple[Any, int]] = []
        while self.queue and len(taken) < most and self.queue[0][0].key not in self._keys:
            taken.append(self.queue.popleft())
        if self._since is None:
            self._since = taken[0][0].offset
        self._unfinished.extend(record.offset for record, _ in taken)
        self._keys.update(record.key for record, _ in taken if record.key is not None)
        self.running += 1
        self._idle.clear()
        return taken

    def returned(self, taken: Sequence[tuple[Any, int]]) -> None:
        """Note that the handler came back; the next event of the same key may start."""
        self.running -= 1
        self._keys.difference_update(record.key for record, _ in taken)

    def finished(self, taken: Sequence[tuple[Any, int]]) -> None:
        """Note that these events are done for good."""
        self._done.update(record.offset for record, _ in taken)
        while self._unfinished and self._unfinished[0] in self._done:
            offset = self._unfinished.popleft()
            self._done.remove(offset)
            self._next = offset + 1
        if not self._unfinished and not self.running:
            self._idle.set()

    @property
    def is_idle(self) -> bool:
        """Whether every event that was started is done."""
        return self._idle.is_set()

    async def idle(self) -> None:
        """Wait until it is."""
        await self._idle.wait()

    @property
    def position(self) -> int | None:
        """Offset after the last event done, all before it included; None while nothing is known."""
        return self._next

    @property
    def committable(self) -> int | None:
        """What to commit; None when there is nothing new."""
        return self._next if self._next != self._committed else None

    def committed(self, offset: int) -> None:
        """Note that the group has `offset`."""
        self._committed = self._since = offset

    @property
    def uncommitted(self) -> range:
        """Offsets of events that were begun here and are not committed; empty when there are none."""
        if self._since is None:
            return range(0)
        end = self._unfinished[-1] + 1 if self._unfinished else self._next
        return range(self._since, self._since if end is None else end)
