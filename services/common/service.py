"""A service: how its parts are put together, how records pass between Faust and its stage, whether it is well."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import faust
import msgspec
from aiohttp import web

from contracts.clock import monotonic_s
from contracts.connection import Connection
from contracts.preflight import max_record_bytes
from contracts.topics import Group, Topic, partitions_of, qualified
from services.common import traces
from services.common.faust_app import HEARTBEAT_S, SESSION_S, Pulse, RawSchema, ServiceSettings, limit_batches, make_app
from services.common.fence import Fence
from services.common.read_back import IdOf, Take, read_tails, uncommitted
from services.common.records import BARE_LETTER_LIMIT, Decide, Effect, Incoming, ServiceError
from services.common.stage import MAX_UNCOMMITTED, RECORD_OVERHEAD, TAIL, Stage, Uncommitted

LONGEST_PAUSE_S: Final = SESSION_S - 2 * HEARTBEAT_S
"""A process that stood still for longer may have been replaced."""
SMALLEST_LIMIT: Final = BARE_LETTER_LIMIT + 2 * RECORD_OVERHEAD
"""Bytes of the largest record that a broker must take at least."""
HELD_BACK_S: Final = 0.1  # pause between two looks whether offsets were committed
STALL_S: Final = 10.0
"""A record unacknowledged for this long, or partitions not fetched for this long, make a service unhealthy."""


@dataclass(frozen=True)
class Kept:
    """The memory of a stage: a topic of its own, of which the last `tail` records a partition are read at a start."""

    topic: Topic
    tail: int
    take: Take


class Service:
    """One Faust app with its stage. Add `consume`s, `start`, then watch `broken`, then `stop`.

    outputs: topics this stage writes, each with the function that finds the id of an effect in a record's value.
    kept: what it remembers beside them.
    payment_partitions: of payments.requested; needed by a stage that reads or writes it.
    fence: of a stage that reads settled payments.
    """

    def __init__(
        self,
        name: str,
        connection: Connection,
        group: Group,
        settings: ServiceSettings,
        *,
        inputs: Iterable[Topic],
        outputs: Mapping[Topic, IdOf],
        kept: Kept | None = None,
        payment_partitions: int = 0,
        fence: Fence | None = None,
    ) -> None:
        self.name = name
        self.connection = connection
        self.pulse = Pulse(LONGEST_PAUSE_S)
        self.app = make_app(connection, group, settings, self.pulse.require)
        self.app.on_partitions_revoked.connect(self._on_revoked, weak=False)
        self.app.on_partitions_assigned.connect(self._on_assigned, weak=False)
        letters = self.named(Topic.DEAD_LETTERS)
        self.stage = Stage(name, letters, self._send)
        used = {*inputs, *outputs, Topic.DEAD_LETTERS, *([kept.topic] if kept else [])}
        self.topics = {
            self.named(topic): partitions_of(topic, payment_partitions, settings.pipeline_partitions) for topic in used
        }
        """Every topic this service reads or writes, with its partitions."""
        self.routes: Sequence[web.AbstractRouteDef] = ()
        """Routes of its HTTP interface besides /healthz."""
        self._fetched: dict[Any, tuple[int | None, float]] = {}
        """Partition → the stamp of its last fetch, and since when that has been seen to stay the same."""
        self._inputs = frozenset(map(self.named, inputs))
        self._outputs = {self.named(topic): found for topic, found in outputs.items()} | {letters: _letters(name)}
        self.fence = fence
        self._kept = kept
        self._uncommitted = Uncommitted()
        self._held_back: str | None = None
        self._reading: asyncio.Task[None] | None = None
        self.read_back = self.passed_over = 0
        """Records of its own topics that were read back at starts, and of those the ones that could not be read."""

    def named(self, topic: Topic) -> str:
        """Return the name of `topic` in this service's namespace."""
        return qualified(self.connection.namespace, topic)

    def consume(self, topic: Topic, decide: Decide) -> None:
        """Add the agent that feeds `topic` to the stage, where `decide` says what each record causes."""

        async def agent(stream: Any) -> None:
            async for event in stream.noack().events():
                message = event.message
                if await self._may_take(message):
                    record = incoming(message)
                    with traces.work(self.app.conf.id, (record,)):
                        await self.stage.take(record, decide, event.ack)

        name = self.named(topic)
        source = self.app.topic(name, schema=RawSchema(allow_empty=True))
        self.app.agent(source, name=f"{self.app.conf.id}-{name}")(agent)

    async def _may_take(self, message: Any) -> bool:
        """Return when the stage may take the next record: True; False where it was revoked and is read again.

        Far from the committed offset it waits for a commit: nobody could remember all that would come again.
        """
        source = message.tp
        while True:
            await self.stage.may_run.wait()
            if message.generation_id != self.app.consumer_generation_id:
                return False
            committed = self.app.consumer._committed_offset[source]  # Faust has no public view of it
            if self._uncommitted.may_take(source, message.offset, committed):
                self._held_back = None
                return True
            place = f"{source.topic}/{source.partition}"
            self._held_back = f"{place} waits for a commit: {MAX_UNCOMMITTED} records are uncommitted"
            await asyncio.sleep(HELD_BACK_S)

    async def start(self) -> None:
        """Start the app."""
        self.pulse.start()
        await self.app.start()

    async def fit_to_broker(self) -> None:
        """Learn how large a record the output topics take, and write nothing larger. Call before `start`."""
        topics = [*self._outputs, *([self.named(self._kept.topic)] if self._kept else [])]
        largest = await asyncio.to_thread(max_record_bytes, self.connection, topics)
        if largest < SMALLEST_LIMIT:
            raise ServiceError(
                f"a topic of {', '.join(topics)} takes records of {largest} bytes at most, fewer than the "
                f"{SMALLEST_LIMIT} that a stage needs; raise max.message.bytes"
            )
        self.stage.max_record_bytes = largest
        limit_batches(self.app, largest)

    async def stop(self) -> None:
        """Take nothing more, wait for what is on its way, commit, leave."""
        self.pulse.end()
        self.stage.may_run.clear()
        if self.broken() is None:
            await self.stage.drain()
        await self.app.stop()

    def broken(self) -> str | None:
        """Return why this process cannot go on, None while it can."""
        if self.pulse.gap_s:
            return self.pulse.told()
        if self.stage.failed.done():
            return str(self.stage.failed.result())
        if self.app.crashed:
            reason = self.app.crash_reason
            return f"Faust crashed ({type(reason).__name__}: {reason}); restart me"
        return None

    def unhealthy(self) -> str | None:
        """Return why no events are being consumed now, None when they are."""
        if problem := self.broken():
            return problem
        if not self.app.started:
            return "starting"
        if self.app.rebalancing or not self.stage.may_run.is_set():
            return "no partitions assigned, or still reading back what was written"
        if self._held_back:
            return self._held_back
        if (age_s := self.stage.open.oldest_s()) > STALL_S:
            return f"a record has been waiting for the broker's acknowledgement for {age_s:.0f} s"
        return self._not_advancing()

    def _not_advancing(self) -> str | None:
        if monotonic_s() - self.stage.last_taken_s < STALL_S:
            return None
        client = self.app.consumer._thread._consumer  # Faust has no public view of its fetches
        assignment = client._subscription.subscription.assignment if client._subscription.subscription else None
        if assignment is None or not assignment.tps:
            return "no partitions assigned"
        for partition in assignment.tps:
            fetched, now_s = assignment.state_value(partition).timestamp, monotonic_s()
            known, since_s = self._fetched.get(partition, (None, now_s))
            since_s = since_s if fetched == known else now_s  # a stamp of the wall clock: only that it changes counts
            self._fetched[partition] = fetched, since_s
            if partition.topic in self._inputs and (age_s := now_s - since_s) > STALL_S:
                when = f"last fetched {age_s:.0f} s ago" if fetched else "not fetched yet"
                return f"{partition.topic}/{partition.partition} was {when}"
        return None

    async def _send(self, effect: Effect) -> "asyncio.Future[Any]":
        """Write straight to the producer, past Faust's topics and serialisers."""
        producer = self.app.producer
        sent: asyncio.Future[Any] = await producer.send(
            effect.topic, effect.key, effect.value, effect.partition, None, traces.headers()
        )
        return sent

    async def _on_revoked(self, _app: faust.App, _revoked: Any, **_: Any) -> None:
        self.stage.revoked()
        self._uncommitted.forget()
        if self._reading is not None:
            self._reading.cancel()

    async def _on_assigned(self, _app: faust.App, _assigned: Any, **_: Any) -> None:
        # As a task: the group's rebalance must not wait for it.
        self._reading = asyncio.create_task(self._read_back())
        self._reading.add_done_callback(self._read)

    def _read(self, reading: "asyncio.Task[None]") -> None:
        if not reading.cancelled() and (wrong := reading.exception()):
            known = isinstance(wrong, ServiceError)
            told = str(wrong) if known else f"reading back ended by {type(wrong).__name__}: {wrong}; restart me"
            self.stage.fail(told)

    async def _read_back(self) -> None:
        span = await uncommitted(self.connection, self.app.conf.id, self._inputs, MAX_UNCOMMITTED)
        tails = dict.fromkeys(self._outputs, max(TAIL, span))
        written: list[str] = []

        def take(record: Any) -> None:
            self.read_back += 1
            if (find := self._outputs.get(record.topic)) is None:
                self._kept.take(record)  # type: ignore[union-attr]  # whose topic is read only where there is one
                return
            if (identity := find(record.value)) is not None:
                written.append(identity)
            if self.fence is not None and record.topic != self.stage.letters_topic:
                self.fence.remember(record.partition, record.value)

        if self._kept is not None:
            tails[self.named(self._kept.topic)] = self._kept.tail
        self.passed_over += await read_tails(self.connection, tails, take)
        for topic in tails:  # else the first event would wait until the producer has found its topic
            await self.app.producer._producer.partitions_for(topic)
        self.stage.assigned(written)


class _Letter(msgspec.Struct):
    letter_id: str
    stage: str


def _letters(stage: str) -> IdOf:
    decode = msgspec.json.Decoder(_Letter).decode

    def identity(value: bytes) -> str | None:
        letter = decode(value)
        return letter.letter_id if letter.stage == stage else None

    return identity


def incoming(message: Any) -> Incoming:
    """Return Faust's message as a plain record."""
    headers: Mapping[str, bytes] = dict(message.headers or ())
    stamp_us = round((message.timestamp or 0.0) * 1e3) * 1000
    return Incoming(message.topic, message.partition, message.offset, stamp_us, message.key, message.value, headers)
