"""One step of the pipeline: read at least once, take effect once.

The rules: an effect carries an id that follows from its cause; input is acknowledged only when the broker has
acknowledged all it caused; an id that was written, or is being written, is not written again. Sends are pipelined:
the next record is decided while earlier ones are on their way.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final

from contracts.clock import now_us, steady_s
from services.common.dead_letters import LETTER_LIMIT, dead_letter, letter_key
from services.common.once import Acknowledgements, SeenIds, Slot
from services.common.records import Decide, Effect, Incoming, Refusal, ServiceError, encode

Send = Callable[[Effect], Awaitable["asyncio.Future[Any]"]]
"""Hand a record to the client; the future is done when the broker has it. May wait: that is the back-pressure."""

DRAIN_S: Final = 5.0
RECORD_OVERHEAD: Final = 512
"""Bytes of key and of what Kafka adds to a record that is alone in its batch."""


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
        self.largest_record = 1_048_576
        """Bytes of the largest record that the broker takes."""
        self.last_taken_s = 0.0
        """Steady time of the newest record taken."""
        self._send = send
        self._on_their_way: dict[str, asyncio.Future[Any]] = {}
        self._sends: set[asyncio.Future[Any]] = set()

    async def take(self, record: Incoming, decide: Decide, release: Callable[[], object]) -> None:
        """Decide one record and send what it causes; `release` is called when the broker has all of it."""
        self.last_taken_s = steady_s()
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
        bare = self.largest_record < LETTER_LIMIT + RECORD_OVERHEAD
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
