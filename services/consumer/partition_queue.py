"""The queues of owned partitions, with backlog, events in flight and retries, and the order of processing.

A server keeps a reference to the queue of the event that it handles. If that queue is dropped meanwhile, the event has
no effect, even if the replica takes the partition again. `OffsetTracker` has the partition's offset to commit.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from heapq import heappop, heappush
from itertools import count, islice
from typing import Any, Final

import msgspec

from contracts.clock import monotonic_s, now_us
from contracts.unpacking import MAX_POLL_BYTES, Unreadable
from services.common.stage import MAX_UNCOMMITTED
from services.consumer.interface import Event


class OffsetTracker:
    """Tracks the offset of a partition that may be committed. All events before it are done. It never decreases."""

    __slots__ = ("_committed", "_done", "in_flight", "position", "skipped", "uncommitted")

    def __init__(self, offset: int | None = None) -> None:
        self.position = offset
        """First offset that is not done. None: unknown."""
        self.skipped = 0
        """Number of offsets before `position` that held no event, such as aborted records and transaction markers."""
        self._committed: int | None = offset
        self.in_flight: deque[tuple[int, int, int]] = deque()
        """Begun batches from the first that is not done, ascending: first and last offset, number of events."""
        self._done: set[int] = set()
        self.uncommitted = 0
        """Number of events that were begun and not committed. It is too high for a while if offsets have gaps."""

    def begin(self, first: int, last: int, events: int = 1) -> None:
        """Note that the events from offset `first` to `last` are handled from now on, as a batch."""
        self.in_flight.append((first, last, events))
        self.uncommitted += events

    def undo_begin(self, first: int) -> bool:
        """Forget that the batch was begun. Return False, without effect, if others were begun after it."""
        if not self.in_flight or self.in_flight[-1][0] != first:
            return False
        self.uncommitted -= self.in_flight.pop()[2]
        return True

    def end(self, first: int) -> None:
        """Note that the batch is done for good."""
        in_flight, done = self.in_flight, self._done
        done.add(first)
        while in_flight and in_flight[0][0] in done:
            first, last, events = in_flight.popleft()
            done.remove(first)
            self._advance(first, last + 1, events)

    def _advance(self, first: int, end: int, events: int = 0) -> None:
        begin = first if self.position is None else self.position
        self.skipped += end - begin - events
        self.position = end

    @property
    def committable_offset(self) -> int | None:
        """The offset to commit. None: nothing new."""
        return self.position if self.position != self._committed else None

    def mark_committed(self, offset: int) -> None:
        """Note that the group has committed `offset`."""
        self._committed = offset
        end = self.in_flight[-1][1] + 1 if self.in_flight else self.position
        self.uncommitted = min(self.uncommitted, (end or offset) - offset)

    def clear_committed(self) -> None:
        """Note that the group has not committed the offset at which this tracker began."""
        self._committed = None


PAUSE_FETCH_RECORDS: Final = 200
"""Backlog of a partition, in records, at which fetching it pauses with the next poll. At 5 ms an event: a second."""
RESUME_FETCH_RECORDS: Final = 50  # backlog of a partition at which fetching it resumes
MAX_WAITING_BYTES: Final = MAX_POLL_BYTES
"""Backlog of all partitions, in bytes, at which polling stops while an event may start. Each partition's fetching
pauses at its equal share."""
MAX_HEAD_START_US: Final = 1_000_000
"""An event counts as arrived at its timestamp, but at most this long before its poll, µs. So an old backlog is
served before new events. A producer whose clock is wrong gains at most this."""


class Batch(msgspec.Struct, eq=False):  # created in a quarter of a dataclass's time
    """Events of one partition that are handled, and retried, together."""

    events: list[Event]
    failures: int = 0
    """Number of failed attempts."""
    is_late: bool = False
    """Whether the handler, or its awaitable, was cancelled because of the time-out."""
    span_context: Any = None
    """Context of the last attempt's tracing span."""

    @property
    def is_unreadable(self) -> bool:
        """Whether this is the single record that replaces a batch that cannot be read."""
        return self.events[0].value.__class__ is Unreadable


class PartitionQueue(OffsetTracker):
    """One partition while this replica owns it."""

    __slots__ = (
        "__weakref__", "_due", "_has_unreadable", "_idle", "_polls", "_retried", "_running", "backlog",
        "backlog_bytes", "cut_off_reason", "epoch", "generation", "is_dropped", "is_in_line", "is_open", "is_paused",
        "next_fetch_offset", "partition",
    )  # fmt: skip

    def __init__(self, partition: int, offset: int | None, epoch: int, generation: int | None = None) -> None:
        super().__init__(offset)
        self.partition = partition
        self.backlog: deque[Event] = deque()
        self.backlog_bytes = 0
        """Size of the backlog's keys and values. Events that start count with the mean size."""
        self.next_fetch_offset = offset
        """Offset after the last record fetched. None: unknown."""
        self.epoch, self.generation = epoch, generation
        self.cut_off_reason = ""
        """Why records fetched from now on would not continue the log that was read. Empty: they do. If it is set, the
        backlog is still served, but nothing is committed, because the offsets belong to another log."""
        self.is_open = True
        self.is_dropped = False
        self.is_in_line = False
        """Whether this queue is in the heap of ready queues."""
        self.is_paused = False
        self._running: list[Batch] = []
        """Batches that handlers work on."""
        self._retried: list[Batch] = []
        """Batches that wait for their next attempt. Later events of the partition, or of the key, wait for them."""
        self._due: deque[Batch] = deque()
        """Batches of `_retried` whose pause is over."""
        self._idle = asyncio.Event()
        self._polls: deque[tuple[int, int]] = deque(maxlen=100)
        """For each poll of the backlog, the offset after it, and the queues' clock minus the wall clock (µs)."""
        self._has_unreadable = False
        """Whether a batch was polled that cannot be read."""

    def put(self, events: Sequence[Event], polled_us: int, now_s: float) -> None:
        """Append events, except those polled before. polled_us: `now_s` by the wall clock."""
        if self.cut_off_reason or not events:
            return
        if events[0].offset < (self.next_fetch_offset or 0):
            events = [event for event in events if event.offset >= (self.next_fetch_offset or 0)]
        self._has_unreadable |= Unreadable in {event.value.__class__ for event in events}
        self.backlog_bytes += _size(events)
        self.backlog.extend(events)
        self.next_fetch_offset = events[-1].offset + 1 if events else self.next_fetch_offset
        self._polls.append((self.next_fetch_offset or 0, round(now_s * 1e6) - polled_us))

    def pass_over(self, offset: int) -> None:
        """Note that the log was read up to `offset`. Offsets before it that were not `put` hold no event."""
        if not self.cut_off_reason and (self.next_fetch_offset is None or offset > self.next_fetch_offset):
            self.next_fetch_offset = offset
            self._pass_over_end()

    def _pass_over_end(self) -> None:
        if not self.backlog and not self.in_flight and self.next_fetch_offset is not None:
            self._advance(self.next_fetch_offset, self.next_fetch_offset)

    @property
    def committable_offset(self) -> int | None:
        """The offset to commit. None: nothing new, or the partition is cut off."""
        return None if self.cut_off_reason else super().committable_offset

    def may_start(self, max_handlers: int) -> bool:
        """Return whether the partition's next event may start now. At most `max_handlers` of its handlers may run."""
        if len(self._running) >= max_handlers or self.is_dropped:
            return False
        if self._due:
            return _keys_of(self._running).isdisjoint(_keys_of(islice(self._due, 1)))
        if not self.backlog or not self.is_open or self.is_paused or self.uncommitted >= MAX_UNCOMMITTED:
            return False
        if not self._running and not self._retried:
            return True
        has_slot = len(self._running) + len(self._retried) < max_handlers
        return has_slot and self.backlog[0].key not in self._busy_keys()

    @property
    def next_arrived_us(self) -> int:
        """Arrival time (µs) of the next event, which must exist. It orders the partitions. Never after the poll."""
        event, polls = self._due[0].events[0] if self._due else self.backlog[0], self._polls
        while polls[0][0] <= event.offset:
            polls.popleft()
        lead_us = event.received_us - event.timestamp_us
        return polls[0][1] + event.received_us - (0 if lead_us < 0 else min(lead_us, MAX_HEAD_START_US))

    def start(self, max_events: int) -> Batch:
        """Take the next batch: one that is due for a retry, else up to `max_events` new events whose keys are free."""
        if self._due:
            batch = self._due.popleft()
            self._retried.remove(batch)
        else:
            backlog, busy = self.backlog, self._busy_keys()
            count = 1 if busy or self._has_unreadable else min(max_events, len(backlog))
            share = self.backlog_bytes // len(backlog)
            events = [backlog.popleft()] if count == 1 else [backlog.popleft() for _ in range(count)]
            while backlog and len(events) < max_events and backlog[0].key not in busy:
                if Unreadable in (events[0].value.__class__, backlog[0].value.__class__):
                    break
                events.append(backlog.popleft())
            self.backlog_bytes = self.backlog_bytes - share * len(events) if backlog else 0
            self.begin(events[0].offset, events[-1].offset, len(events))
            batch = Batch(events)
        if batch.events[0].epoch != self.epoch:  # the partition was reopened under a newer plan
            batch.events = [msgspec.structs.replace(event, epoch=self.epoch) for event in batch.events]
        self._running.append(batch)
        return batch

    def handler_returned(self, batch: Batch) -> None:
        """Note that the handler has returned, so that the next event of the same key may start."""
        self._running.remove(batch)

    def finish(self, batch: Batch) -> None:
        """Note that these events are done for good."""
        self.end(batch.events[0].offset)
        if not self.in_flight and not self.backlog:
            self._pass_over_end()
        self._mark_idle()

    def retry(self, batch: Batch) -> bool:
        """Keep a batch for its next attempt. Return False if it went back to the backlog of a closed queue."""
        self._retried.append(batch)
        if not self.is_open:
            self.give_back()
        return batch in self._retried

    def make_due(self, batch: Batch) -> None:
        """Note that the pause before the batch's next attempt is over."""
        if batch in self._retried:
            self._due.append(batch)

    def give_back(self) -> None:
        """Put batches that wait for a retry back into the backlog, so that the next owner begins with them.

        A batch stays if a later event was begun, because that event would be served twice.
        """
        for batch in sorted(self._retried, key=lambda batch: batch.events[0].offset, reverse=True):
            if self.undo_begin(batch.events[0].offset):
                self._retried.remove(batch)
                self.backlog.extendleft(reversed(batch.events))
                self.backlog_bytes += _size(batch.events)
                if batch in self._due:
                    self._due.remove(batch)
        self._mark_idle()

    @property
    def is_idle(self) -> bool:
        """Whether no event is in flight."""
        return not self.in_flight and not self._running

    async def wait_until_idle(self) -> None:
        """Wait until no event is in flight."""
        while not self.is_idle:
            self._idle.clear()
            await self._idle.wait()

    def _busy_keys(self) -> Collection[bytes]:
        """Return the keys of events that handlers work on, or that wait for a retry."""
        return _keys_of((*self._running, *self._retried)) if self._running or self._retried else ()

    def _mark_idle(self) -> None:
        if not self.in_flight and not self._running and not self._idle.is_set():
            self._idle.set()


def _keys_of(batches: Iterable[Batch]) -> set[bytes]:
    return {event.key for batch in batches for event in batch.events if event.key is not None}


def _size(events: Iterable[Event]) -> int:
    return sum([len(event.key or b"") + len(event.value or b"") for event in events])


class PartitionQueues:
    """Partition → queue. Handovers open, close and drop queues, the poller fills them, the servers empty them."""

    def __init__(self, *, per_partition: int, batch_size: int, clock: Callable[[], float] = monotonic_s) -> None:
        self._queues: dict[int, PartitionQueue] = {}
        self._per_partition, self._batch_size, self._clock = per_partition, batch_size, clock
        self._ready_queues: list[tuple[int, int, PartitionQueue]] = []
        """Heap of (arrival time, tie breaker, queue). Each queue is in it at most once, and may have become unready."""
        self._tie_breakers = count()
        self.startable = asyncio.Event()
        """Set when an event may be ready to start."""
        self.early_commit = asyncio.Event()
        """Set when so many events are uncommitted that a partition may soon have to wait for a commit."""
        self.is_held = False
        """Whether no event may start, because nothing can be committed."""
        self.on_full: Callable[[int, bool], None] = lambda partition, is_full: None
        """Called when fetching a partition should pause (True) and resume (False)."""
        self.full_partitions: set[int] = set()
        """Partitions whose fetching is paused."""

    @property
    def owned_partitions(self) -> frozenset[int]:
        """Partitions that this replica claims: those that it serves and those that it is about to give up."""
        return frozenset(self._queues)

    @property
    def served_partitions(self) -> tuple[int, ...]:
        """Partitions that this replica serves, ascending."""
        return tuple(sorted(partition for partition, queue in self._queues.items() if queue.is_open))

    def __getitem__(self, partition: int) -> PartitionQueue:
        if partition not in self._queues:
            raise KeyError(f"partition {partition} is not assigned to this replica; assigned: {sorted(self._queues)}")
        return self._queues[partition]

    def items(self) -> Iterable[tuple[int, PartitionQueue]]:
        """Return partitions with their queues."""
        return self._queues.items()

    def open(self, offsets: Mapping[int, int | None], epoch: int, generation: int | None = None) -> None:
        """Begin to serve partitions, taken in `generation`, from `offsets`. None: from the committed offset."""
        for partition, offset in offsets.items():
            self._queues[partition] = PartitionQueue(partition, offset, epoch, generation)

    def reopen(self, partitions: Iterable[int], epoch: int) -> None:
        """Continue to serve partitions under the plan `epoch`."""
        for partition in partitions:
            self._queues[partition].is_open = True
            self._queues[partition].epoch = epoch
            self._offer(self._queues[partition])

    def close(self, partitions: Iterable[int]) -> None:
        """Start no further event of these partitions."""
        for partition in partitions:
            self._queues[partition].is_open = False
            self._queues[partition].give_back()

    @property
    def free_bytes(self) -> int:
        """Return how many bytes may be polled. 0: nothing may be polled until an event starts."""
        left = MAX_WAITING_BYTES - sum(queue.backlog_bytes for queue in self._queues.values())
        return max(left, 0 if self.startable.is_set() else 1)

    def pause(self, partition: int) -> None:
        """Start no further event of the partition until `resume`."""
        self[partition].is_paused = True

    def resume(self, partition: int) -> None:
        """Undo `pause`."""
        self[partition].is_paused = False
        self._offer(self[partition])

    async def wait_until_idle(self, partitions: Iterable[int], timeout_s: float) -> set[int]:
        """Wait, at most `timeout_s`, until no event is in flight. Return the partitions without an event in flight."""
        queues = {partition: self._queues[partition] for partition in partitions}
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                for queue in queues.values():
                    await queue.wait_until_idle()
        return {partition for partition, queue in queues.items() if queue.is_idle}

    def drop(self, partitions: Iterable[int]) -> None:
        """Forget partitions with their backlog. Events in flight have no effect any more."""
        for partition in partitions:
            queue = self._queues.pop(partition)
            queue.is_open, queue.is_dropped = False, True
            self.full_partitions.discard(partition)

    def cut_off(self, partition: int, reason: str) -> None:
        """Accept no more records of the partition, because they would not continue the log that was read."""
        self[partition].cut_off_reason = reason
        self.full_partitions.discard(partition)

    def events_of(self, topic: str, partition: int, records: Iterable[Any]) -> list[Event]:
        """Return unpacked records as events."""
        queue, us = self._queues.get(partition), now_us()
        epoch, token = (queue.epoch, queue.generation) if queue else (0, None)
        return [
            Event(topic, partition, r.offset, r.key, r.value, tuple(r.headers), r.timestamp * 1000, us, epoch, token)
            for r in records
        ]

    def put(self, partition: int, events: Sequence[Event], polled_us: int) -> None:
        """Append events, polled until `polled_us`. Those of a partition that is not owned are ignored."""
        queue = self._queues.get(partition)
        if queue is not None:
            waited = len(queue.backlog)  # before the poll
            queue.put(events, polled_us, self._clock())
            self._check_fetch_limits(queue, waited)
            self._offer(queue)

    def pass_over(self, positions: Mapping[int, int]) -> None:
        """Note for each partition the offset that the client will fetch next. See `PartitionQueue.pass_over`."""
        for partition in positions.keys() & self._queues.keys():
            self._queues[partition].pass_over(positions[partition])

    def take(self, returned: PartitionQueue | None = None) -> tuple[PartitionQueue, Batch] | None:
        """Start the batch that arrived first of all that may start now; None: none may. returned: served just now."""
        ready = self._ready_queues
        if returned is not None and not returned.is_in_line and returned.may_start(self._per_partition):
            if not self.is_held and (not ready or returned.next_arrived_us <= ready[0][0]):
                return returned, self._start(returned)
            self._offer(returned)
        while ready and not self.is_held:
            queue = heappop(ready)[-1]
            queue.is_in_line = False
            if queue.may_start(self._per_partition):
                return queue, self._start(queue)
        self.startable.clear()
        return None

    def _start(self, queue: PartitionQueue) -> Batch:
        batch = queue.start(self._batch_size)
        if queue.uncommitted >= MAX_UNCOMMITTED // 2:
            self.early_commit.set()
        if queue.partition in self.full_partitions:
            self._check_fetch_limits(queue)
        if self._per_partition > 1:
            self._offer(queue)
        return batch

    def hold(self, is_held: bool) -> None:
        """If `is_held`, let no event start. Else let events start, also in partitions that waited for a commit."""
        self.is_held = is_held
        for queue in self._queues.values():
            self._offer(queue)
        self.startable.set()

    def handler_returned(self, queue: PartitionQueue, batch: Batch) -> None:
        """Note that the handler has returned, so that the next event of the partition, or the key, may start."""
        queue.handler_returned(batch)
        self._offer(queue)

    def retry(self, queue: PartitionQueue, batch: Batch, after_s: float) -> None:
        """Retry a batch after `after_s` seconds. From a closed queue's backlog, its next owner retries it."""
        if queue.retry(batch):
            asyncio.get_running_loop().call_later(after_s, self._due, queue, batch)

    def _due(self, queue: PartitionQueue, batch: Batch) -> None:
        queue.make_due(batch)
        self._offer(queue)

    def _offer(self, queue: PartitionQueue) -> None:
        if not queue.is_in_line and queue.may_start(self._per_partition):
            queue.is_in_line = True
            if not self._ready_queues:
                self.startable.set()
            heappush(self._ready_queues, (queue.next_arrived_us, next(self._tie_breakers), queue))

    def _check_fetch_limits(self, queue: PartitionQueue, waited: int = 0) -> None:
        partition, backlog, share = queue.partition, len(queue.backlog), MAX_WAITING_BYTES // len(self._queues)
        if partition not in self.full_partitions:
            if waited >= PAUSE_FETCH_RECORDS or queue.backlog_bytes >= share:
                self.full_partitions.add(partition)
                self.on_full(partition, True)
        elif backlog <= RESUME_FETCH_RECORDS and queue.backlog_bytes <= share // 2:
            self.full_partitions.discard(partition)
            self.on_full(partition, False)
