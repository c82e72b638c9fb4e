"""One stage of the pipeline: input is read at least once, each effect happens once.

The id of an effect follows from its cause. Input is acknowledged in order, after the broker has all its effects. An id
that was written, or is being written, is not written again. Sends are pipelined: the next record is decided while
earlier sends are pending.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Iterable
from typing import Any, Final

from contracts.clock import monotonic_s, now_us
from contracts.unpacking import Unreadable
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
"""Passes a record to the client. The future is done when the broker has it. Back-pressure makes the call wait."""

DRAIN_S: Final = 5.0
RECORD_OVERHEAD: Final = 512  # bytes of the key and of what Kafka adds to a record in its own batch
MAX_UNCOMMITTED: Final = 5000
"""Offsets of an input partition that a stage takes beyond the committed one before it waits for a commit.

This bounds the repeats, and so the ids to remember and to read back. At 75 events/s in a partition it is a minute.
"""
MIN_REMEMBERED_IDS: Final = 50_000
"""Ids that a stage remembers in addition to those read back (about 10 MB). The oldest is dropped first. The number is
above MAX_UNCOMMITTED for each input partition."""
MIN_TAIL_RECORDS: Final = 10_000
"""Fewest records that are read back from each output partition. They cover repeats by the producers of the input,
and the output of other instances until the group notices that an instance has died."""


class Slot:
    """An input record whose outputs are not all confirmed."""

    __slots__ = ("_queue", "_release", "_waiting", "opened_s")

    def __init__(self, queue: deque["Slot"], release: Callable[[], object], opened_s: float) -> None:
        self._queue, self._release = queue, release
        self._waiting = 1  # the decision itself, ended by the last `confirm`
        self.opened_s = opened_s

    def expect(self) -> None:
        """Require one more confirmation before this record is acknowledged."""
        self._waiting += 1

    def confirm(self) -> None:
        """Count one confirmation, of an output or of the decision. Acknowledge all records that are complete now."""
        self._waiting -= 1
        queue = self._queue
        while queue and queue[0]._waiting == 0:
            queue.popleft()._release()


class Acknowledgements:
    """The open slots of every assigned partition.

    Faust commits the first contiguous run of acknowledged offsets and may commit beyond a gap. So a record is
    acknowledged only after all earlier records of its partition.
    """

    def __init__(self, clock: Callable[[], float] = monotonic_s) -> None:
        self._clock = clock
        self._open: dict[Hashable, deque[Slot]] = {}

    def open(self, source: Hashable, release: Callable[[], object]) -> Slot:
        """Open a slot for the next record of `source` (topic and partition). `release` acknowledges the record."""
        queue = self._open.setdefault(source, deque())
        slot = Slot(queue, release, self._clock())
        queue.append(slot)
        return slot

    def forget(self) -> None:
        """Drop all slots. Their partitions were revoked and will be read again from the committed offset."""
        for queue in self._open.values():
            queue.clear()
        self._open.clear()

    @property
    def count(self) -> int:
        """Number of records not acknowledged."""
        return sum(map(len, self._open.values()))

    def oldest_s(self) -> float:
        """Return the age of the oldest open record, seconds; 0 without one."""
        opened = [queue[0].opened_s for queue in self._open.values() if queue]
        return self._clock() - min(opened) if opened else 0.0


class RecentIds:
    """The newest ids; older ones are dropped. One id is not enough, because a crash may change the order of the ids."""

    def __init__(self, retention: int = MIN_REMEMBERED_IDS) -> None:
        self._least = self._retention = retention
        self._ids: dict[str, None] = {}  # a dict keeps insertion order

    def add(self, identity: str) -> None:
        """Add `identity` as the newest."""
        self._ids.pop(identity, None)
        self._ids[identity] = None
        if len(self._ids) > self._retention:
            del self._ids[next(iter(self._ids))]

    def update(self, identities: Iterable[str]) -> None:
        """Add all ids that were read back. They stay until `retention` new ids (default 50,000) were added."""
        identities = list(identities)
        self._retention = self._least + len(identities)
        for identity in identities:
            self.add(identity)

    def __contains__(self, identity: str) -> bool:
        return identity in self._ids

    def __len__(self) -> int:
        return len(self._ids)


class Stage:
    """Applies `Decide` functions to records and carries out each effect once."""

    def __init__(self, name: str, letters_topic: str, send: Send) -> None:
        self.name, self.letters_topic = name, letters_topic
        self.recent_ids = RecentIds()
        self.acknowledgements = Acknowledgements()
        self.may_run = asyncio.Event()
        """Set while partitions are assigned and their past output was read back."""
        self.failed: asyncio.Future[ServiceError] = asyncio.get_running_loop().create_future()
        self.records_written = self.duplicates_dropped = self.records_refused = 0
        self.max_record_bytes = 1_048_576
        """Largest record that the broker accepts, bytes."""
        self.last_record_s = 0.0
        """Monotonic time at which the newest record was taken, seconds."""
        self._send = send
        self._pending: dict[str, asyncio.Future[Any]] = {}  # by the id of the effect
        self._sends: set[asyncio.Future[Any]] = set()

    async def take(self, record: Incoming, decide: Decide, release: Callable[[], object]) -> None:
        """Decide one record and send its effects. `release` is called, in record order, when the broker has them."""
        self.last_record_s = monotonic_s()
        slot = self.acknowledgements.open((record.topic, record.partition), release)
        try:
            value = record.value
            effects = (Refusal((value.reason,)),) if isinstance(value, Unreadable) else tuple(decide(record))
        except Exception as error:  # an unexpected record must not stop the records behind it
            reason = f"{self.name} cannot process it: {type(error).__name__}: {error}"
            effects = (Refusal((reason,)),)
        for effect in effects:
            await self._write(self._letter(record, effect) if isinstance(effect, Refusal) else effect, slot)
        slot.confirm()

    def _letter(self, record: Incoming, refusal: Refusal) -> Effect:
        self.records_refused += 1
        bare = self.max_record_bytes < LETTER_LIMIT + RECORD_OVERHEAD
        letter = dead_letter(self.name, record, refusal, now_us(), bare=bare)
        return Effect(letter.letter_id, self.letters_topic, letter_key(record.key), encode(letter))

    async def _write(self, effect: Effect, slot: Slot) -> None:
        if effect.id is not None:
            if effect.id in self.recent_ids:
                self.duplicates_dropped += 1
                return
            pending = self._pending.get(effect.id)
            if pending is not None:  # acknowledge the repeat only with the first
                self.duplicates_dropped += 1
                slot.expect()
                pending.add_done_callback(lambda sent: self._confirm(sent, slot))
                return
            # Registered before the first await, so that a repeat is recognised while this task waits.
            self._pending[effect.id] = asyncio.get_running_loop().create_future()
        slot.expect()
        try:
            sent = await self._send(effect)
        except asyncio.CancelledError:  # a rebalance: the record was not sent, and will be read again
            if effect.id is not None:
                self._pending.pop(effect.id).cancel()
            raise
        except Exception as error:
            self._fail(error, effect)
            return
        self._sends.add(sent)
        sent.add_done_callback(lambda done: self._sent(done, effect, slot))

    def _sent(self, done: "asyncio.Future[Any]", effect: Effect, slot: Slot) -> None:
        self._sends.discard(done)
        if error := asyncio.CancelledError() if done.cancelled() else done.exception():
            self._fail(error, effect)
            return
        if effect.id is not None:
            self.recent_ids.add(effect.id)
            self._pending.pop(effect.id).set_result(None)
            self.records_written += 1
        slot.confirm()

    def _confirm(self, sent: "asyncio.Future[Any]", slot: Slot) -> None:
        if not sent.cancelled() and sent.exception() is None:
            slot.confirm()

    def _fail(self, why: BaseException, effect: Effect) -> None:
        self.fail(f"a record could not be written to {effect.topic} ({type(why).__name__}: {why}); restart the service")

    def fail(self, why: str) -> None:
        """End the process with the reason `why`. A later call has no effect."""
        if not self.failed.done():
            self.failed.set_result(ServiceError(why))

    def on_revoked(self) -> None:
        """Stop taking records, because the partitions are revoked. Pending sends stay registered."""
        self.may_run.clear()
        self.acknowledgements.forget()

    def on_assigned(self, written: Iterable[str]) -> None:
        """Begin to take records. written: ids of effects written in the past."""
        self.recent_ids.update(written)
        self.may_run.set()

    async def drain(self, deadline_s: float = DRAIN_S) -> bool:
        """Wait until all sends are confirmed. Return False at the deadline."""
        if not self._sends:
            return True
        _, late = await asyncio.wait(self._sends, timeout=deadline_s)
        return not late
