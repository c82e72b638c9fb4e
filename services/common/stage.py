"""One step of the pipeline: read at least once, take effect once.

An effect carries an id that follows from its cause. Input is acknowledged in order, and only once the broker has all
that it caused. An id that was written, or is being written, is not written again. Sends are pipelined: the next record
is decided while earlier ones are on their way.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Iterable
from typing import Any, Final

from contracts.clock import monotonic_s, now_us
from services.common.records import (
    LETTER_LIMIT,
    Decide,
    Effect,
    Incoming,
    Refusal,
    ServiceError,
    dead_letter,
    encode,
    letter_key,
)

Send = Callable[[Effect], Awaitable["asyncio.Future[Any]"]]
"""Hand a record to the client; the future is done when the broker has it. May wait: that is the back-pressure."""

DRAIN_S: Final = 5.0
RECORD_OVERHEAD: Final = 512  # bytes of key and of what Kafka adds to a record that is alone in its batch
MAX_UNCOMMITTED: Final = 5000
"""Records of an input partition that a stage takes beyond the committed offset: then it waits for a commit.

So what can be repeated is bounded, and with it the ids to remember and to read back. With 75 events/s in a partition, a
minute without a commit.
"""
RETENTION: Final = 50_000
"""Ids a running stage remembers beside those it has read back, oldest dropped first: more than SPAN for each partition
of its input, some 10 MB."""
TAIL: Final = 10_000
"""Records of each output partition read back at least: for repeats by the producers of the input, and beside them for
what other copies of the stage have written while the group noticed that one had died."""


class Slot:
    """One input record whose outputs are not all confirmed yet."""

    __slots__ = ("_queue", "_release", "_waiting", "opened_s")

    def __init__(self, queue: deque["Slot"], release: Callable[[], object], opened_s: float) -> None:
        self._queue = queue
        self._release = release
        self._waiting = 1  # the decision itself, which the last `confirm` ends
        self.opened_s = opened_s

    def expect(self) -> None:
        """One more output must be confirmed before this record may be acknowledged."""
        self._waiting += 1

    def confirm(self) -> None:
        """One output is confirmed, or the decision is over. Acknowledges whatever may be acknowledged by that."""
        self._waiting -= 1
        queue = self._queue
        while queue and queue[0]._waiting == 0:
            queue.popleft()._release()


class Acknowledgements:
    """The open slots of every assigned partition.

    Faust may commit past a gap, for it commits the first run of acknowledged offsets: so nothing is acknowledged before
    everything earlier of the same partition is.
    """

    def __init__(self, clock: Callable[[], float] = monotonic_s) -> None:
        self._clock = clock
        self._open: dict[Hashable, deque[Slot]] = {}

    def open(self, source: Hashable, release: Callable[[], object]) -> Slot:
        """Begin with the next record of `source` (topic and partition). `release` acknowledges it."""
        queue = self._open.setdefault(source, deque())
        slot = Slot(queue, release, self._clock())
        queue.append(slot)
        return slot

    def forget(self) -> None:
        """Drop all slots: their partitions were given up and will be read again from the committed offset."""
        for queue in self._open.values():
            queue.clear()
        self._open.clear()

    @property
    def count(self) -> int:
        """Records not acknowledged yet."""
        return sum(map(len, self._open.values()))

    def oldest_s(self) -> float:
        """Age of the oldest open record in seconds; 0 without one."""
        opened = [queue[0].opened_s for queue in self._open.values() if queue]
        return self._clock() - min(opened) if opened else 0.0


class Uncommitted:
    """Offsets that were taken and may come again. No more than `most` of a partition are, until some are committed."""

    def __init__(self, most: int = MAX_UNCOMMITTED) -> None:
        self._most = most
        self._taken: dict[Hashable, deque[int]] = {}

    def may_take(self, source: Hashable, offset: int, committed: int | None) -> bool:
        """Take one more and return True, or False while it is too far from what is committed.

        committed: the offset from which `source` would be read again; None where that is not known.
        """
        taken = self._taken.setdefault(source, deque())
        while committed is not None and taken and taken[0] < committed:
            taken.popleft()
        if len(taken) >= self._most:
            return False
        taken.append(offset)
        return True

    def forget(self) -> None:
        """Begin anew: the partitions are read again from their committed offsets."""
        self._taken.clear()


class SeenIds:
    """A set that forgets its oldest members. A set, not a high-water mark: order is not guaranteed after a crash."""

    def __init__(self, retention: int = RETENTION) -> None:
        self._least = self._retention = retention
        self._ids: dict[str, None] = {}  # a dict keeps insertion order

    def add(self, identity: str) -> None:
        """Remember `identity` as the newest."""
        self._ids.pop(identity, None)
        self._ids[identity] = None
        if len(self._ids) > self._retention:
            del self._ids[next(iter(self._ids))]

    def update(self, identities: Iterable[str]) -> None:
        """Remember all, what was read back, and keep them until as many new ones as ever fit have come."""
        identities = list(identities)
        self._retention = self._least + len(identities)
        for identity in identities:
            self.add(identity)

    def __contains__(self, identity: str) -> bool:
        return identity in self._ids

    def __len__(self) -> int:
        return len(self._ids)


class Stage:
    """Carries out what `Decide` functions decide, each effect once."""

    def __init__(self, name: str, letters_topic: str, send: Send) -> None:
        self.name = name
        self.letters_topic = letters_topic
        self.seen = SeenIds()
        self.open = Acknowledgements()
        self.may_run = asyncio.Event()
        """Set while the partitions are ours and the ids of the past are known."""
        self.failed: asyncio.Future[ServiceError] = asyncio.get_running_loop().create_future()
        self.written = self.duplicates = self.refused = 0
        self.max_record_bytes = 1_048_576
        """Bytes of the largest record that the broker takes."""
        self.last_taken_s = 0.0
        """Steady time of the newest record taken."""
        self._send = send
        self._on_their_way: dict[str, asyncio.Future[Any]] = {}
        self._sends: set[asyncio.Future[Any]] = set()

    async def take(self, record: Incoming, decide: Decide, release: Callable[[], object]) -> None:
        """Decide one record and send what it causes; `release` is called when the broker has all of it."""
        self.last_taken_s = monotonic_s()
        slot = self.open.open((record.topic, record.partition), release)
        try:
            decided = tuple(decide(record))
        except Exception as unforeseen:  # a record that no rule foresaw must not stop all the records behind it
            reason = f"{self.name} cannot process it: {type(unforeseen).__name__}: {unforeseen}"
            decided = (Refusal((reason,)),)
        for each in decided:
            await self._write(self._letter(record, each) if isinstance(each, Refusal) else each, slot)
        slot.confirm()

    def _letter(self, record: Incoming, refusal: Refusal) -> Effect:
        self.refused += 1
        bare = self.max_record_bytes < LETTER_LIMIT + RECORD_OVERHEAD
        letter = dead_letter(self.name, record, refusal, now_us(), bare=bare)
        return Effect(letter.letter_id, self.letters_topic, letter_key(record.key), encode(letter))

    async def _write(self, effect: Effect, slot: Slot) -> None:
        if effect.id is not None:
            if effect.id in self.seen:
                self.duplicates += 1
                return
            on_its_way = self._on_their_way.get(effect.id)
            if on_its_way is not None:  # acknowledged no sooner than the first of its kind
                self.duplicates += 1
                slot.expect()
                on_its_way.add_done_callback(lambda sent: self._confirm(sent, slot))
                return
            # Known before the first await: a repeat must not slip in while the client makes us wait.
            promise: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
            self._on_their_way[effect.id] = promise
        slot.expect()
        try:
            sent = await self._send(effect)
        except Exception as refused:
            self._fail(refused, effect)
            return
        self._sends.add(sent)
        sent.add_done_callback(lambda done: self._sent(done, effect, slot))

    def _sent(self, done: "asyncio.Future[Any]", effect: Effect, slot: Slot) -> None:
        self._sends.discard(done)
        if wrong := asyncio.CancelledError() if done.cancelled() else done.exception():
            self._fail(wrong, effect)
            return
        if effect.id is not None:
            self.seen.add(effect.id)
            self._on_their_way.pop(effect.id).set_result(None)
            self.written += 1
        slot.confirm()

    def _confirm(self, sent: "asyncio.Future[Any]", slot: Slot) -> None:
        if not sent.cancelled() and sent.exception() is None:
            slot.confirm()

    def _fail(self, why: BaseException, effect: Effect) -> None:
        self.fail(f"a record could not be written to {effect.topic} ({type(why).__name__}: {why}); restart me")

    def fail(self, why: str) -> None:
        """End the process, which says `why`. The first reason stays."""
        if not self.failed.done():
            self.failed.set_result(ServiceError(why))

    def revoked(self) -> None:
        """Stop taking records: the partitions are being given up. What is on its way stays known as such."""
        self.may_run.clear()
        self.open.forget()

    def assigned(self, written: Iterable[str]) -> None:
        """Take records, knowing the ids `written` in the past."""
        self.seen.update(written)
        self.may_run.set()

    async def drain(self, deadline_s: float = DRAIN_S) -> bool:
        """Wait until everything decided is confirmed. Returns False at the deadline."""
        if not self._sends:
            return True
        _, late = await asyncio.wait(self._sends, timeout=deadline_s)
        return not late
