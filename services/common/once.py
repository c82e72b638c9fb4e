"""What makes effects happen once: input acknowledged in order, ids of what was written, and those of the past.

Faust may commit past a gap: it commits the first run of acknowledged offsets, also when an earlier offset is still
open. So nothing is acknowledged here before everything earlier of the same partition is.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Hashable, Iterable, Mapping
from typing import Any, Final

import msgspec
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError

from contracts.connection import Connection
from services.common.records import ServiceError

RETENTION: Final = 100_000
"""Ids a running stage remembers, oldest dropped first: over five minutes at 300 events/s, some 20 MB."""
TAIL_PER_PARTITION: Final = 10_000
"""Records of each output partition read back at a start.

A crash repeats at most what was unacknowledged or uncommitted: one commit interval plus the records in flight, some
hundreds. The rest is for repeats by the producers of the input.
"""
READ_DEADLINE_S: Final = 60.0

IdOf = Callable[[bytes], str | None]
"""Value of an output record → the id of the effect; None for a record of another stage."""


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
    """The open slots of every assigned partition."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
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


class SeenIds:
    """A set that forgets its oldest members. A set, not a high-water mark: order is not guaranteed after a crash."""

    def __init__(self, retention: int = RETENTION) -> None:
        self._retention = retention
        self._ids: dict[str, None] = {}  # a dict keeps insertion order

    def add(self, identity: str) -> None:
        """Remember `identity` as the newest."""
        self._ids.pop(identity, None)
        self._ids[identity] = None
        if len(self._ids) > self._retention:
            del self._ids[next(iter(self._ids))]

    def update(self, identities: Iterable[str]) -> None:
        """Remember all, the last as the newest."""
        for identity in identities:
            self.add(identity)

    def __contains__(self, identity: str) -> bool:
        return identity in self._ids

    def __len__(self) -> int:
        return len(self._ids)


def identity_in(field: str, make: Callable[[str], str] = str) -> IdOf:
    """Return the function that reads an effect's id from its record: `make` of its text field `field`."""
    decode = msgspec.json.Decoder(msgspec.defstruct("Identity", [(field, str)])).decode

    def identity(value: bytes) -> str:
        return make(getattr(decode(value), field))

    return identity


async def written_ids(
    connection: Connection,
    outputs: Mapping[str, IdOf],
    tail: int = TAIL_PER_PARTITION,
    tell: Callable[[str, int, bytes], None] = lambda topic, partition, value: None,
) -> list[str]:
    """Return the ids in the last `tail` records of each partition of each output topic; `tell` gets each that has one.

    Raises ServiceError when the broker does not deliver them within the deadline.
    """
    try:
        async with asyncio.timeout(READ_DEADLINE_S):
            return [identity async for identity in _read(connection, outputs, tail, tell)]
    except (KafkaError, TimeoutError) as missing:
        raise ServiceError(
            f"what was written to {', '.join(outputs)} could not be read back within {READ_DEADLINE_S:.0f} s "
            f"({type(missing).__name__}: {missing}); without it events could be doubled, so restart me"
        ) from missing


async def _read(
    connection: Connection, outputs: Mapping[str, IdOf], tail: int, tell: Callable[[str, int, bytes], None]
) -> AsyncIterator[str]:
    consumer = AIOKafkaConsumer(**connection.aiokafka(), group_id=None, enable_auto_commit=False, fetch_max_wait_ms=50)
    await consumer.start()
    try:
        ends = await _seek_tails(consumer, outputs, tail)
        while ends:
            batch: dict[TopicPartition, list[Any]] = await consumer.getmany(*ends, timeout_ms=200)
            for partition, records in batch.items():
                for record in records:
                    identity = outputs[partition.topic](record.value) if record.value else None
                    if identity is not None:
                        tell(partition.topic, partition.partition, record.value)
                        yield identity
            ends = {tp: end for tp, end in ends.items() if await consumer.position(tp) < end}
    finally:
        await consumer.stop()


async def _seek_tails(consumer: AIOKafkaConsumer, outputs: Mapping[str, IdOf], tail: int) -> dict[TopicPartition, int]:
    """Assign every partition that holds records, `tail` before its end. Returns where each ends."""
    await consumer._client.set_topics(outputs)  # a consumer without subscription knows no topics
    partitions = [
        TopicPartition(topic, number) for topic in outputs for number in consumer.partitions_for_topic(topic) or ()
    ]
    starts = await consumer.beginning_offsets(partitions)
    ends = {tp: end for tp, end in (await consumer.end_offsets(partitions)).items() if end > starts[tp]}
    consumer.assign(list(ends))
    for tp, end in ends.items():
        consumer.seek(tp, max(starts[tp], end - tail))
    return ends
