"""The partitions that are held: what waits in each, what is being handled or tried again, which event comes next.

A queue is its own token: whoever works on an event keeps the queue, and one that was dropped counts for nothing any
more, also when the same partition is taken again. `OffsetTracker` knows which offset of a partition may be committed.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count
from typing import Any, Final, NamedTuple

from contracts.clock import steady_s


class OffsetTracker:
    """The offsets of a partition that one member may commit: they only grow, each once all before it are done."""

    __slots__ = ("_begun_from", "_committed", "_done", "position", "unfinished")

    def __init__(self, offset: int | None = None) -> None:
        self.position = offset
        """Offset after the last event done, all before it included; None while nothing is known."""
        self._committed: int | None = offset
        self._begun_from = offset
        self.unfinished: deque[int] = deque()
        """Offsets begun that are not done, or whose forerunners are not, ascending."""
        self._done: set[int] = set()

    def begin(self, offsets: Sequence[int]) -> None:
        """Note events, in order, that are being handled from now on."""
        if self._begun_from is None:
            self._begun_from = offsets[0]
        self.unfinished.extend(offsets)

    def undo(self, offsets: Sequence[int]) -> bool:
        """Forget that these were begun; return whether that was possible: not where others were begun after them."""
        if list(self.unfinished)[-len(offsets) :] != list(offsets):
            return False
        for _ in offsets:
            self.unfinished.pop()
        return True

    def end(self, offsets: Iterable[int]) -> None:
        """Note that these events are done for good."""
        self._done.update(offsets)
        while self.unfinished and self.unfinished[0] in self._done:
            offset = self.unfinished.popleft()
            self._done.remove(offset)
            self.position = offset + 1

    @property
    def committable(self) -> int | None:
        """The offset to commit; None when there is nothing new."""
        return self.position if self.position != self._committed else None

    def committed(self, offset: int) -> None:
        """Note that the group has `offset`."""
        self._committed = self._begun_from = offset

    def uncommit(self) -> None:
        """Note that the group has another offset than the one that this began at."""
        self._committed = None

    @property
    def uncommitted(self) -> range:
        """Offsets of events that were begun here and are not committed; empty when there are none."""
        if self._begun_from is None:
            return range(0)
        end = self.unfinished[-1] + 1 if self.unfinished else self.position
        return range(self._begun_from, self._begun_from if end is None else end)


ENOUGH: Final = 200
"""Records waiting in a partition above which no more of it is fetched: a second of work at 5 ms, and little memory."""
WANTING: Final = 50  # … until no more than this are left
HEAD_START_S: Final = 1.0
"""How much earlier than it was polled an event may count as arrived because its timestamp says so. A backlog comes
before what is new, as first in, first out wants it; a producer whose clock is wrong gains no more than this."""


class Polled(NamedTuple):
    """One record as it came from the broker."""

    record: Any
    received_us: int
    """When it was polled (µs since the epoch)."""
    arrived_s: float
    """The order in which all partitions are served; see `arrived_s`."""


def arrived_s(timestamp_ms: int, received_us: int, now_s: float) -> float:
    """Return when a record polled now counts as arrived, by the clock of `now_s`: never later than now."""
    age_s = received_us / 1e6 - timestamp_ms / 1e3
    return now_s - min(max(age_s, 0.0), HEAD_START_S)


@dataclass(eq=False, slots=True)
class Taken:
    """Records of one partition that are handled together, and tried again together."""

    records: list[Polled]
    failures: int = 0
    """Attempts that failed so far."""
    traced: Any = None
    """Context of the span of the last attempt."""


class PartitionQueue(OffsetTracker):
    """One partition while it is held."""

    __slots__ = (
        "__weakref__", "_due", "_idle", "_keys", "_retried", "cut_off", "cut_off_for_good", "epoch", "expected",
        "generation", "is_dropped", "is_offered", "is_open", "partition", "paused", "running", "waiting",
    )  # fmt: skip

    def __init__(self, partition: int, offset: int | None, epoch: int, generation: int | None = None) -> None:
        super().__init__(offset)
        self.partition = partition
        self.waiting: deque[Polled] = deque()
        self.expected = offset
        """Offset after the last record fetched; None until anything is known."""
        self.epoch = epoch
        self.generation = generation
        self.cut_off = ""
        """Why what is fetched from now on does not follow what was read; empty: it does. What waits is served, and
        nothing is committed, for the offsets are those of another log."""
        self.cut_off_for_good = False
        """Whether to start over would not help."""
        self.is_open = True
        self.is_dropped = False
        self.is_offered = False
        """Whether it stands in line for the servers."""
        self.paused = False
        self.running = 0
        """Handlers at work."""
        self._keys: Counter[bytes] = Counter()
        """Keys that handlers are at work on."""
        self._retried: list[Taken] = []
        """What has failed and is to be tried again; what comes after it in its partition, or of its key, waits."""
        self._due: deque[Taken] = deque()
        """… whose pause is over."""
        self._idle = asyncio.Event()
        self._idle.set()

    def put(self, records: Sequence[Any], received_us: int, now_s: float) -> None:
        """Add what was polled. Records that were there before are left out."""
        if self.cut_off:
            return
        least = -1 if self.expected is None else self.expected
        self.waiting.extend(
            Polled(record, received_us, arrived_s(record.timestamp, received_us, now_s))
            for record in records
            if record.offset >= least
        )
        if records:
            self.expected = max(least, records[-1].offset + 1)

    @property
    def committable(self) -> int | None:
        """The offset to commit; None when there is nothing new."""
        return None if self.cut_off else super().committable

    def may_start(self, most: int) -> bool:
        """Return whether its next event may be started beside those that are running."""
        if self.running >= most or self.is_dropped:
            return False
        if self._due:
            return not any(polled.record.key in self._keys for polled in self._due[0].records)
        if not self.is_open or self.paused or not self.waiting or self.running + len(self._retried) >= most:
            return False
        return self._is_free(self.waiting[0].record.key)

    @property
    def next_arrived_s(self) -> float:
        """When its next event arrived. There must be one."""
        return (self._due[0].records[0] if self._due else self.waiting[0]).arrived_s

    def start(self, most: int) -> Taken:
        """Take what comes next: what is to be tried again, else up to `most` of no key that is being worked on."""
        if self._due:
            taken = self._due.popleft()
            self._retried.remove(taken)
        else:
            taken = Taken([])
            while self.waiting and len(taken.records) < most and self._is_free(self.waiting[0].record.key):
                taken.records.append(self.waiting.popleft())
            self.begin([polled.record.offset for polled in taken.records])
        self._keys.update(polled.record.key for polled in taken.records if polled.record.key is not None)
        self.running += 1
        self._idle.clear()
        return taken

    def returned(self, taken: Taken) -> None:
        """Note that the handler came back; the next event of the same key may start."""
        self.running -= 1
        for polled in taken.records:
            if polled.record.key is not None:
                self._keys[polled.record.key] -= 1
                if not self._keys[polled.record.key]:
                    del self._keys[polled.record.key]

    def finished(self, taken: Taken) -> None:
        """Note that these events are done for good."""
        self.end(polled.record.offset for polled in taken.records)
        self._rest()

    def retry(self, taken: Taken) -> bool:
        """Hold these back to be tried again; return whether they are: else they wait as if never begun."""
        self._retried.append(taken)
        if not self.is_open:
            self.give_back()
        return taken in self._retried

    def due(self, taken: Taken) -> None:
        """Note that their pause is over."""
        if taken in self._retried:
            self._due.append(taken)

    def give_back(self) -> None:
        """What is to be tried again waits as if it had never begun: whoever serves the partition next begins with it.

        Not where an event behind it was begun: that one would be served twice.
        """
        for taken in sorted(self._retried, key=lambda taken: taken.records[0].record.offset, reverse=True):
            if self.undo([polled.record.offset for polled in taken.records]):
                self._retried.remove(taken)
                self.waiting.extendleft(reversed(taken.records))
                if taken in self._due:
                    self._due.remove(taken)
        self._rest()

    @property
    def is_idle(self) -> bool:
        """Whether every event that was started is done."""
        return self._idle.is_set()

    async def idle(self) -> None:
        """Wait until it is."""
        await self._idle.wait()

    def _is_free(self, key: bytes | None) -> bool:
        if key is None:
            return True
        return key not in self._keys and not any(
            polled.record.key == key for taken in self._retried for polled in taken.records
        )

    def _rest(self) -> None:
        if not self.unfinished and not self.running:
            self._idle.set()


class PartitionQueues:
    """Partition → queue. Opened, closed and dropped by handovers, filled by the poller, emptied by the servers."""

    def __init__(self, *, per_partition: int, batch_size: int, clock: Callable[[], float] = steady_s) -> None:
        self._queues: dict[int, PartitionQueue] = {}
        self._per_partition = per_partition
        self._batch_size = batch_size
        self._clock = clock
        self._line: list[tuple[float, int, PartitionQueue]] = []
        """A heap of queues that had an event to start when they were put there; each stands in it once."""
        self._numbers = count()
        self._startable = asyncio.Event()
        self.on_full: Callable[[int, bool], None] = lambda partition, full: None
        """Told when a partition has enough records waiting (True), and when it can do with more (False)."""
        self.full: set[int] = set()
        """Partitions that have enough."""

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
            self._queues[partition] = PartitionQueue(partition, offset, epoch, generation)

    def reopen(self, partitions: Iterable[int], epoch: int) -> None:
        """Serve on: these stay."""
        for partition in partitions:
            self._queues[partition].is_open = True
            self._queues[partition].epoch = epoch
            self._offer(self._queues[partition])

    def close(self, partitions: Iterable[int]) -> None:
        """Start no further event of these."""
        for partition in partitions:
            self._queues[partition].is_open = False
            self._queues[partition].give_back()

    def pause(self, partition: int) -> None:
        """Start no further event until `resume`."""
        self[partition].paused = True

    def resume(self, partition: int) -> None:
        """Undo `pause`."""
        self[partition].paused = False
        self._offer(self[partition])

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
            queue = self._queues.pop(partition)
            queue.is_open, queue.is_dropped = False, True
            self.full.discard(partition)

    def cut_off(self, partition: int, reason: str, *, for_good: bool = False) -> None:
        """Take nothing more in: what would come does not follow what was read, or (for good) cannot be read at all."""
        self[partition].cut_off, self[partition].cut_off_for_good = reason, for_good
        self.full.discard(partition)

    def put(self, partition: int, records: Sequence[Any], received_us: int) -> None:
        """Add what was polled; what is not held is left to its owner."""
        queue = self._queues.get(partition)
        if queue is not None:
            queue.put(records, received_us, self._clock())
            self._weigh(queue)
            self._offer(queue)

    def take(self) -> tuple[PartitionQueue, Taken] | None:
        """Start what arrived first of all that may be started now; None when there is nothing."""
        while self._line:
            queue = heappop(self._line)[-1]
            queue.is_offered = False
            if queue.may_start(self._per_partition):
                taken = queue.start(self._batch_size)
                self._weigh(queue)
                self._offer(queue)
                return queue, taken
        self._startable.clear()
        return None

    def returned(self, queue: PartitionQueue, taken: Taken) -> None:
        """Note that the handler came back; the partition, or the key, may have its next event started."""
        queue.returned(taken)
        self._offer(queue)

    def retry(self, queue: PartitionQueue, taken: Taken, after_s: float) -> None:
        """Try these again once the time is over. A partition that is being given up leaves it to its next owner."""
        if queue.retry(taken):
            asyncio.get_running_loop().call_later(after_s, self._due, queue, taken)

    async def startable(self) -> None:
        """Wait until an event may have become startable."""
        await self._startable.wait()

    def _due(self, queue: PartitionQueue, taken: Taken) -> None:
        queue.due(taken)
        self._offer(queue)

    def _offer(self, queue: PartitionQueue) -> None:
        """Something changed: put the queue in line if an event of it may be started."""
        if not queue.is_offered and queue.may_start(self._per_partition):
            queue.is_offered = True
            heappush(self._line, (queue.next_arrived_s, next(self._numbers), queue))
            self._startable.set()

    def _weigh(self, queue: PartitionQueue) -> None:
        partition, waiting = queue.partition, len(queue.waiting)
        if waiting >= ENOUGH and partition not in self.full:
            self.full.add(partition)
            self.on_full(partition, True)
        elif waiting <= WANTING and partition in self.full:
            self.full.discard(partition)
            self.on_full(partition, False)
