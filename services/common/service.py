"""A service: its parts, its health, and the path of records between Faust and its stage."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import faust
import msgspec
from aiohttp import web

from contracts.clock import monotonic_s
from contracts.connection import Connection
from contracts.topics import Group, Topic, partitions_of, qualified
from services.common import traces
from services.common.faust_app import HEARTBEAT_S, SESSION_S, Pulse, ServiceSettings, make_app
from services.common.fence import Fence
from services.common.read_back import ReadId, TakeRecord, count_uncommitted, read_tails
from services.common.records import BARE_LETTER_LIMIT, Decide, Effect, Incoming, ServiceError
from services.common.stage import MAX_UNCOMMITTED, MIN_TAIL_RECORDS, RECORD_OVERHEAD, Stage
from services.consumer.output import limit_batches
from services.consumer.topic_facts import RecordSizes

MAX_PAUSE_S: Final = SESSION_S - 2 * HEARTBEAT_S
"""A process that was paused for longer than this, in seconds, may have been replaced."""
MIN_RECORD_LIMIT_BYTES: Final = BARE_LETTER_LIMIT + 2 * RECORD_OVERHEAD
"""Size of records that a broker must at least accept, bytes."""
COMMIT_POLL_S: Final = 0.1  # pause between two checks for committed offsets
FETCH_PAUSE_S: Final = 0.02
"""Pause of a stage that reads many short batches. Stages behind it read its batches without a pause."""
STALL_S: Final = 10.0
"""A service is unhealthy if a record is unacknowledged, or a partition not fetched, for this long."""


@dataclass(frozen=True)
class StageMemory:
    """The memory of a stage: a topic of its own. At the start, the last `tail` records of each partition are read."""

    topic: Topic
    tail: int
    take: TakeRecord


class Service:
    """One Faust app with its stage. Call `consume` for each input, then `start`, poll `failure_reason`, then `stop`.

    outputs: topics that this stage writes, each with the function that reads the id of an effect from a record.
    memory: the stage's own topic of state. fence: for a stage that reads settled payments.
    payment_partitions: partition count of payments.requested, required by a stage that reads or writes this topic.
    background: inputs and outputs on which no order waits, or few. Their records are read and written every 0.2 s.
    pause_s: pause between two fetches of the other inputs, seconds. Orders that arrive meanwhile share all requests.
    """

    def __init__(
        self,
        name: str,
        connection: Connection,
        group: Group,
        settings: ServiceSettings,
        *,
        inputs: Iterable[Topic],
        outputs: Mapping[Topic, ReadId],
        memory: StageMemory | None = None,
        payment_partitions: int = 0,
        fence: Fence | None = None,
        background: Iterable[Topic] = (),
        pause_s: float = 0.0,
    ) -> None:
        self.name, self.connection = name, connection
        self.pulse = Pulse(MAX_PAUSE_S)
        self._decisions: dict[str, Decide] = {}
        self.app = make_app(connection, group, settings)
        transport = self.app.transport
        transport.may_write, transport.take = self.pulse.require_no_pause, self._take
        transport.pause_s = pause_s
        transport.background = {self.topic_name(topic) for topic in (*background, *([memory.topic] if memory else []))}
        self.app.on_partitions_revoked.connect(self._on_revoked, weak=False)
        self.app.on_partitions_assigned.connect(self._on_assigned, weak=False)
        letters = self.topic_name(Topic.DEAD_LETTERS)
        self.stage = Stage(name, letters, self._send)
        used = {*inputs, *outputs, Topic.DEAD_LETTERS, *([memory.topic] if memory else [])}
        self.topics = {
            self.topic_name(topic): partitions_of(topic, payment_partitions, settings.pipeline_partitions)
            for topic in used
        }
        """Topic that this service reads or writes → number of partitions."""
        self.routes: Sequence[web.AbstractRouteDef] = ()
        """Routes of the service's HTTP interface in addition to /healthz."""
        self._fetched: dict[Any, tuple[int | None, float]] = {}
        """Partition → timestamp of its last fetch, and monotonic time (s) since which that is unchanged."""
        self._inputs = frozenset(map(self.topic_name, inputs))
        self._outputs = {self.topic_name(topic): read for topic, read in outputs.items()} | {
            letters: _letter_id_reader(name)
        }
        self.fence, self._memory = fence, memory
        self._begins: dict[Any, int] = {}  # partition → first offset taken
        self._commit_wait: str | None = None  # the reason while the stage waits for a commit
        self._reading: asyncio.Task[None] | None = None
        self.records_read_back = self.records_skipped = 0
        """Number of records of its own topics that were read back, and of those that could not be decoded."""

    def topic_name(self, topic: Topic) -> str:
        """Return the name of `topic` in the namespace of this service."""
        return qualified(self.connection.namespace, topic)

    def consume(self, topic: Topic, decide: Decide) -> None:
        """Subscribe to `topic`. `decide` returns the effects of each of its records."""
        name = self.topic_name(topic)
        self._decisions[name] = decide
        self.app.topics.add(self.app.topic(name))

    async def _take(self, message: Any) -> None:
        if await self._may_take(message):
            record = incoming(message)
            release = partial(self.app.consumer.done, message.tp, message.offset + 1)
            with traces.work(self.app.conf.id, (record,)):
                await self.stage.take(record, self._decisions[record.topic], release)

    async def _may_take(self, message: Any) -> bool:
        """Wait until the stage may take the next record. Return False if its partition was revoked.

        A record far beyond the committed offset waits for a commit, because a stage remembers a limited number of ids.
        """
        source = message.tp
        while True:
            await self.stage.may_run.wait()
            if message.generation_id != self.app.consumer_generation_id:
                return False
            first = self._begins.setdefault(source, message.offset)
            consumer = self.app.consumer  # not public in Faust: offsets committed, and of the last record taken
            committed, last = max(consumer._committed_offset[source] or 0, first), consumer._read_offset[source] or 0
            # A gap of offsets, as of aborted records, is no reason to wait if all that was taken is committed.
            if message.offset - committed < MAX_UNCOMMITTED or committed > last:
                self._commit_wait = None
                return True
            self._commit_wait = f"{source.topic}/{source.partition} waits: {MAX_UNCOMMITTED} offsets are uncommitted"
            await asyncio.sleep(COMMIT_POLL_S)

    async def start(self) -> None:
        """Start the app."""
        self.pulse.begin()
        await self.app.start()

    def _limit_records(self, max_bytes: int) -> None:
        """Write no batch above `max_bytes`, because a broker rejects an oversized batch as a whole."""
        if max_bytes < MIN_RECORD_LIMIT_BYTES:
            raise ServiceError(
                f"one of {', '.join(self._outputs)} accepts records of at most {max_bytes} bytes, but a stage needs "
                f"{MIN_RECORD_LIMIT_BYTES}; raise max.message.bytes"
            )
        self.stage.max_record_bytes = max_bytes
        limit_batches(self.app.producer._producer, max_bytes)

    async def stop(self) -> None:
        """Take no more records, wait for pending sends, commit and leave the group."""
        self.stage.may_run.clear()
        if self.failure_reason() is None:
            await self.stage.drain()
        await self.app.stop()

    def failure_reason(self) -> str | None:
        """Return why this process cannot continue; None if it can. Call it regularly: it notices pauses."""
        self.pulse.beat()
        if self.pulse.gap_s:
            return self.pulse.describe_pause()
        if self.stage.failed.done():
            return str(self.stage.failed.result())
        if self.app.crashed:
            reason = self.app.crash_reason
            return f"Faust crashed ({type(reason).__name__}: {reason}); restart the service"
        return None

    def unhealthy_reason(self) -> str | None:
        """Return why no events are consumed now, or None if events are consumed."""
        if problem := self.failure_reason():
            return problem
        if not self.app.started:
            return "starting"
        if self.app.rebalancing or not self.stage.may_run.is_set():
            return "no partitions assigned, or its output is still being read back"
        if self._commit_wait:
            return self._commit_wait
        if (age_s := self.stage.acknowledgements.oldest_s()) > STALL_S:
            return f"a record has waited {age_s:.0f} s for the broker's acknowledgement"
        return self._not_advancing()

    def _not_advancing(self) -> str | None:
        if monotonic_s() - self.stage.last_record_s < STALL_S:
            return None
        client = self.app.consumer._thread._consumer  # not public in Faust
        assignment = client._subscription.subscription.assignment if client._subscription.subscription else None
        if assignment is None or not assignment.tps:
            return "no partitions assigned"
        for partition in assignment.tps:
            fetched, now_s = assignment.state_value(partition).timestamp, monotonic_s()
            previous, since_s = self._fetched.get(partition, (None, now_s))
            since_s = since_s if fetched == previous else now_s  # a wall-clock timestamp, of which only a change counts
            self._fetched[partition] = fetched, since_s
            if partition.topic in self._inputs and (age_s := now_s - since_s) > STALL_S:
                when = f"last fetched {age_s:.0f} s ago" if fetched else "not fetched yet"
                return f"{partition.topic}/{partition.partition} was {when}"
        return None

    async def _send(self, effect: Effect) -> "asyncio.Future[Any]":
        sent: asyncio.Future[Any] = await self.app.producer._producer.send(
            effect.topic, effect.value, effect.key, effect.partition, headers=traces.headers()
        )
        return sent

    async def _on_revoked(self, _app: faust.App, _revoked: Any, **_: Any) -> None:
        self.stage.on_revoked()
        self._begins.clear()
        if self._reading is not None:
            self._reading.cancel()

    async def _on_assigned(self, _app: faust.App, _assigned: Any, **_: Any) -> None:
        # A task of its own, because the rebalance of the group must not wait for it.
        self._reading = asyncio.create_task(self._read_back())
        self._reading.add_done_callback(self._on_read_back)

    def _on_read_back(self, reading: "asyncio.Task[None]") -> None:
        if not reading.cancelled() and (error := reading.exception()):
            message = f"reading back failed ({type(error).__name__}: {error}); restart the service"
            self.stage.fail(str(error) if isinstance(error, ServiceError) else message)

    async def _read_back(self) -> None:
        span = await count_uncommitted(self.connection, self.app.conf.id, self._inputs, MAX_UNCOMMITTED)
        tails = dict.fromkeys(self._outputs, max(MIN_TAIL_RECORDS, span))
        written: list[str] = []

        def take(record: Any) -> None:
            self.records_read_back += 1
            if (read_id := self._outputs.get(record.topic)) is None:
                self._memory.take(record)  # type: ignore[union-attr]  # no other topic is read
                return
            if (identity := read_id(record.value)) is not None:
                written.append(identity)
            if self.fence is not None and record.topic != self.stage.letters_topic:
                self.fence.remember(record.partition, record.value)

        if self._memory is not None:
            tails[self.topic_name(self._memory.topic)] = self._memory.tail
        self.records_skipped += await read_tails(self.connection, tails, take)
        await RecordSizes(self.app.producer._producer.client, self._limit_records).query_limits(tails)
        for topic in tails:  # so that the first event does not wait for the metadata of its topic
            await self.app.producer._producer.partitions_for(topic)
        self.stage.on_assigned(written)


class _Letter(msgspec.Struct):
    letter_id: str
    stage: str


def _letter_id_reader(stage: str) -> ReadId:
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
