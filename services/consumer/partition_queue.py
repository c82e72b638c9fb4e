"""The partitions that are held: what waits in each, what is being handled, what may be committed, which comes next.

A queue is its own token: whoever works on an event keeps the queue, and one that was dropped counts for nothing any
more, also when the same partition is taken again.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

ENOUGH: Final = 200
"""Records waiting in a partition above which no more of it is fetched: a second of work at 5 ms, and little memory."""
WANTING: Final = 50
"""… until no more than this are left."""

Taken = Sequence[tuple[Any, int]]
"""Records and when each was polled (µs)."""


class Offsets:
    """What one member may commit of a partition. Offsets only grow; one is committed once all before it are done."""

    __slots__ = ("_begun_from", "_committed", "_done", "_unfinished", "position")

    def __init__(self, offset: int | None = None) -> None:
        self.position = offset
        """Offset after the last event done, all before it included; None while nothing is known."""
        self._committed = self._begun_from = offset
        self._unfinished: deque[int] = deque()
        self._done: set[int] = set()

    def begin(self, offsets: Sequence[int]) -> None:
        """Note events, in order, that are being handled from now on."""
        if self._begun_from is None:
            self._begun_from = offsets[0]
        self._unfinished.extend(offsets)

    def end(self, offsets: Iterable[int]) -> None:
        """Note that these events are done for good."""
        self._done.update(offsets)
        while self._unfinished and self._unfinished[0] in self._done:
            offset = self._unfinished.popleft()
            self._done.remove(offset)
            self.position = offset + 1

    @property
    def committable(self) -> int | None:
        """What to commit; None when there is nothing new."""
        return self.position if self.position != self._committed else None

    def committed(self, offset: int) -> None:
        """Note that the group has `offset`."""
        self._committed = self._begun_from = offset

    @property
    def uncommitted(self) -> range:
        """Offsets of events that were begun here and are not committed; empty when there are none."""
        if self._begun_from is None:
            return range(0)
        end = self._unfinished[-1] + 1 if self._unfinished else self.position
        return range(self._begun_from, self._begun_from if end is None else end)


class PartitionQueue(Offsets):
    """One partition while it is held."""

    __slots__ = ("_idle", "_keys", "epoch", "expected", "generation", "is_open", "paused", "running", "waiting")

    def __init__(self, offset: int | None, epoch: int, generation: int | None = None) -> None:
        super().__init__(offset)
        self.waiting: deque[tuple[Any, int]] = deque()
        self.expected = offset
        """Offset after the last record fetched; None until anything is known."""
        self.epoch = epoch
        self.generation = generation
        self.is_open = True
        self.paused = False
        self.running = 0
        """Handlers at work."""
        self._keys: set[bytes] = set()
        self._idle = asyncio.Event()
        self._idle.set()

    def put(self, records: Sequence[Any], received_us: int) -> None:
        """Add what was polled. Records that were there before are left out."""
        least = -1 if self.expected is None else self.expected
        self.waiting.extend((record, received_us) for record in records if record.offset >= least)
        if records:
            self.expected = max(least, records[-1].offset + 1)

    def may_start(self, most: int) -> bool:
        """Return whether its next event may be started beside those that are running."""
        if not self.is_open or self.paused or not self.waiting or self.running >= most:
            return False
        return self.running == 0 or self.waiting[0][0].key not in self._keys

    def start(self, most: int) -> Taken:
        """Take what comes next: up to `most`, and no key that another handler is at work on. Unfinished from now on."""
        taken: list[tuple[Any, int]] = []
        while self.waiting and len(taken) < most and self.waiting[0][0].key not in self._keys:
            taken.append(self.waiting.popleft())
        self.begin([record.offset for record, _ in taken])
        self._keys.update(record.key for record, _ in taken if record.key is not None)
        self.running += 1
        self._idle.clear()
        return taken

    def returned(self, taken: Taken) -> None:
        """Note that the handler came back; the next event of the same key may start."""
        self.running -= 1
        self._keys.difference_update(record.key for record, _ in taken)

    def finished(self, taken: Taken) -> None:
        """Note that these events are done for good."""
        self.end(record.offset for record, _ in taken)
        if not self._unfinished and not self.running:
            self._idle.set()

    @property
    def is_idle(self) -> bool:
        """Whether every event that was started is done."""
        return self._idle.is_set()

    async def idle(self) -> None:
        """Wait until it is."""
        await self._idle.wait()


class PartitionQueues:
    """Partition → queue. Opened, closed and dropped by handovers, filled by the poller, emptied by the servers."""

    def __init__(self, *, per_partition: int, batch_size: int) -> None:
        self._queues: dict[int, PartitionQueue] = {}
        self._per_partition = per_partition
        self._batch_size = batch_size
        self._startable = asyncio.Event()
        self.on_full: Callable[[int, bool], None] = lambda partition, full: None
        """Told when a partition has enough records waiting (True), and when it can do with more (False)."""
        self._full: set[int] = set()

    @property
    def held(self) -> frozenset[int]:
        """Partitions that this replica claims: those it serves and those it is about to give up."""
        return frozenset(self._queues)

    @property
    def serving(self) -> tuple[int, ...]:
        """Partitions that it serves, ascending."""
        return tuple(sorted(partition for partition, queue in self._queues.items() if queue.is_open))

    def __getitem__(self, partition: int) -> PartitionQueue:
        if partition not in self._queues:
            raise KeyError(f"partition {partition} is not held now; held are {sorted(self._queues)}")
        return self._queues[partition]

    def items(self) -> Iterable[tuple[int, PartitionQueue]]:
        """Return partitions with their queues."""
        return self._queues.items()

    def open(self, offsets: Mapping[int, int | None], epoch: int, generation: int | None = None) -> None:
        """Begin to serve partitions, taken in `generation`, from `offsets`; None: from what the group has committed."""
        for partition, offset in offsets.items():
            self._queues[partition] = PartitionQueue(offset, epoch, generation)

    def reopen(self, partitions: Iterable[int], epoch: int) -> None:
        """Serve on: these stay."""
        for partition in partitions:
            self._queues[partition].is_open = True
            self._queues[partition].epoch = epoch
        self.look()

    def close(self, partitions: Iterable[int]) -> None:
        """Start no further event of these."""
        for partition in partitions:
            self._queues[partition].is_open = False
        self.look()

    async def settle(self, partitions: Iterable[int], patience_s: float) -> set[int]:
        """Wait until every event that was started is done; return the partitions where that came true in time."""
        queues = {partition: self._queues[partition] for partition in partitions}
        waits = [asyncio.ensure_future(queue.idle()) for queue in queues.values() if not queue.is_idle]
        if waits:
            _, late = await asyncio.wait(waits, timeout=patience_s)
            for wait in late:
                wait.cancel()
        return {partition for partition, queue in queues.items() if queue.is_idle}

    def drop(self, partitions: Iterable[int]) -> None:
        """Forget these: what waits belongs to others, what is still being handled counts for nothing."""
        for partition in partitions:
            self._queues.pop(partition).is_open = False
            self._full.discard(partition)
        self.look()

    def put(self, partition: int, records: Sequence[Any], received_us: int) -> None:
        """Add what was polled; what is not held is left to its owner."""
        queue = self._queues.get(partition)
        if queue is not None:
            queue.put(records, received_us)
            self._weigh(partition, queue)
            self.look()

    def take(self) -> tuple[PartitionQueue, Taken] | None:
        """Start the oldest events (by the record's timestamp) that may be started now; None when there are none."""
        ready = [item for item in self._queues.items() if item[1].may_start(self._per_partition)]
        if not ready:
            self._startable.clear()
            return None
        partition, queue = min(ready, key=_age)
        taken = queue.start(self._batch_size)
        self._weigh(partition, queue)
        return queue, taken

    def look(self) -> None:
        """Something changed: see again whether an event may be started."""
        self._startable.set()

    async def startable(self) -> None:
        """Wait until an event may have become startable."""
        await self._startable.wait()

    def _weigh(self, partition: int, queue: PartitionQueue) -> None:
        waiting = len(queue.waiting)
        if waiting >= ENOUGH and partition not in self._full:
            self._full.add(partition)
            self.on_full(partition, True)
        elif waiting <= WANTING and partition in self._full:
            self._full.discard(partition)
            self.on_full(partition, False)


def _age(item: tuple[int, PartitionQueue]) -> int:
    return int(item[1].waiting[0][0].timestamp)
