"""Records fetched and not yet served, so that the server never waits for the network while work is there."""

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any, Final

ENOUGH_RECORDS: Final = 500
"""Above this no more is polled: 2.5 s of work at 5 ms, far more than a fetch takes, and little memory."""


class Inbox:
    """One queue for each partition owned. Closed during a rebalance; what a partition holds survives only if it stays.

    Records that arrive while closed belong to the assignment that is about to open (aiokafka hands out none between
    revocation and assignment); they are kept until then.
    """

    def __init__(self) -> None:
        self._queues: dict[int, deque[tuple[Any, int]]] = {}
        self._next: dict[int, int] = {}
        self._early: list[tuple[int, Sequence[Any], int]] = []
        self._is_open = False
        self._filled = asyncio.Event()
        self._space = asyncio.Event()
        self._space.set()

    @property
    def is_open(self) -> bool:
        """Whether records may be served."""
        return self._is_open

    @property
    def positions(self) -> dict[int, int]:
        """Partition → next offset to serve, for the partitions of which something was served or fetched."""
        heads = {partition: queue[0][0].offset for partition, queue in self._queues.items() if queue}
        return {p: heads.get(p, self._next[p]) for p in self._queues if p in heads or p in self._next}

    def fetched_to(self, partition: int) -> int | None:
        """Return the offset after the last record fetched; None when none was."""
        return self._next.get(partition)

    def close(self) -> None:
        """Hand out nothing more. What is queued stays until `open` says whose it is."""
        self._is_open = False
        self._early.clear()
        self._measure()

    def open(self, partitions: Iterable[int], kept: Iterable[int] = ()) -> None:
        """Begin an assignment of `partitions`; of those in `kept` the queue and its position are still valid."""
        keep = set(kept)
        self._queues = {p: self._queues[p] if p in keep and p in self._queues else deque() for p in partitions}
        self._next = {p: at for p, at in self._next.items() if p in keep and p in self._queues}
        self._is_open = True
        early, self._early = self._early, []
        for partition, records, received_us in early:
            self.put(partition, records, received_us)
        self._measure()

    def put(self, partition: int, records: Sequence[Any], received_us: int) -> None:
        """Add what was polled at `received_us`. Records seen before (kept, then fetched again) are left out."""
        if not self._is_open:
            self._early.append((partition, records, received_us))
            return
        queue = self._queues.get(partition)
        if queue is None or not records:
            return
        expected = self._next.get(partition, -1)
        queue.extend((record, received_us) for record in records if record.offset >= expected)
        self._next[partition] = max(expected, records[-1].offset + 1)
        self._measure()

    def take(self) -> tuple[Any, int] | None:
        """Return the oldest record (by its timestamp) and when it was polled; None when there is none."""
        if not self._is_open:
            return None
        filled = [queue for queue in self._queues.values() if queue]
        if not filled:
            return None
        entry = min(filled, key=_age).popleft()
        self._measure()
        return entry

    async def filled(self) -> None:
        """Wait until there is something to take."""
        await self._filled.wait()

    async def space(self) -> None:
        """Wait until there is room for more."""
        await self._space.wait()

    def _measure(self) -> None:
        waiting = sum(map(len, self._queues.values()))
        _switch(self._filled, on=self._is_open and waiting > 0)
        _switch(self._space, on=waiting < ENOUGH_RECORDS)


def _switch(event: asyncio.Event, *, on: bool) -> None:
    if on:
        event.set()
    else:
        event.clear()


def _age(queue: deque[tuple[Any, int]]) -> int:
    return int(queue[0][0].timestamp)
