"""Reads back the last records of a stage's own output before the stage starts: those that its input may repeat.

Foreign and malformed records are skipped and counted. Transaction markers are not counted.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, Final

import msgspec
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError

from contracts.connection import Connection
from contracts.unpacking import MAX_POLL_BYTES, poll_limit
from contracts.validation import DECODE_ERRORS
from services.common.records import ServiceError

READ_DEADLINE_S: Final = 60.0
FETCH_BYTES: Final = 524_288  # limit for each partition: fetched records stay in memory until they are processed
BATCH: Final = 1000
CLOSE_DEADLINE_S: Final = 0.5

ReadId = Callable[[bytes], str | None]
"""Returns the effect's id in the value of an output record, or None for another stage's record. Raises UNDECODABLE."""
TakeRecord = Callable[[Any], None]
"""Processes a record that was read (it has topic, key and value). If it raises UNDECODABLE, the record is skipped."""

_log = logging.getLogger(__name__)


def id_reader(field: str, make: Callable[[str], str] = str) -> ReadId:
    """Return the function that reads an effect's id from its record. It applies `make` to the text field `field`."""
    decode = msgspec.json.Decoder(msgspec.defstruct("Identity", [(field, str)])).decode

    def identity(value: bytes) -> str:
        return make(getattr(decode(value), field))

    return identity


async def count_uncommitted(connection: Connection, group: str, inputs: Iterable[str], limit: int) -> int:
    """Return how many records of `inputs` may be read again although they were processed before.

    For each partition these are the records after the committed offset of `group`, but at most `limit`, because a stage
    takes no more than that beyond its commits. Raises KafkaError.
    """
    admin = AIOKafkaAdminClient(**connection.aiokafka())
    consumer = _consumer(connection)
    await admin.start()
    try:
        await consumer.start()
        committed = await admin.list_consumer_group_offsets(group)
        partitions = await _partitions(consumer, inputs)
        starts, ends = await consumer.beginning_offsets(partitions), await consumer.end_offsets(partitions)
    finally:
        await _disconnect(admin.close())
        await _disconnect(consumer.stop())
    begins = {tp: max(starts[tp], committed[tp].offset if tp in committed else 0) for tp in partitions}
    return sum(min(limit, max(0, ends[tp] - begins[tp])) for tp in partitions)


async def read_tails(connection: Connection, tails: Mapping[str, int], take: TakeRecord) -> int:
    """Pass the last records of each partition to `take`, except tombstones. Return how many were skipped.

    tails: topic → offsets to read of each partition. Raises ServiceError if the broker does not deliver them in time.
    """
    try:
        async with asyncio.timeout(READ_DEADLINE_S):
            return await _read(connection, tails, take)
    except (KafkaError, TimeoutError) as error:
        raise ServiceError(
            f"records of {', '.join(tails)} could not be read back within {READ_DEADLINE_S:.0f} s "
            f"({type(error).__name__}: {error}); without them effects could be repeated; restart the service"
        ) from error


async def _read(connection: Connection, tails: Mapping[str, int], take: TakeRecord) -> int:
    consumer = _consumer(connection)
    await consumer.start()
    records_skipped = 0
    try:
        ends = await _seek_tails(consumer, tails)
        while ends:
            with poll_limit(MAX_POLL_BYTES):
                batch: Any = await consumer.getmany(*ends, timeout_ms=200, max_records=BATCH)
            for partition, records in batch.items():
                for record in records:
                    try:
                        if record.value is not None:
                            take(record)
                    except DECODE_ERRORS as error:
                        records_skipped += 1
                        where = f"{partition.topic}/{partition.partition} at offset {record.offset}"
                        _log.warning("Skipped a foreign or unreadable record in %s (%s)", where, error)
                await asyncio.sleep(0)  # let other tasks run while a long tail is read
            ends = {tp: end for tp, end in ends.items() if await consumer.position(tp) < end}
    finally:
        await _disconnect(consumer.stop())
    return records_skipped


async def _disconnect(closing: Awaitable[None]) -> None:
    """Close a client. With TLS the broker may confirm the end only after 30 s, for which no event may wait."""
    with suppress(TimeoutError):
        async with asyncio.timeout(CLOSE_DEADLINE_S):
            await closing


async def _seek_tails(consumer: AIOKafkaConsumer, tails: Mapping[str, int]) -> dict[TopicPartition, int]:
    partitions = await _partitions(consumer, tails)
    starts = await consumer.beginning_offsets(partitions)
    ends = {tp: end for tp, end in (await consumer.end_offsets(partitions)).items() if end > starts[tp]}
    consumer.assign(list(ends))
    for tp, end in ends.items():
        consumer.seek(tp, max(starts[tp], end - tails[tp.topic]))
    return ends


async def _partitions(consumer: AIOKafkaConsumer, topics: Iterable[str]) -> list[TopicPartition]:
    await consumer._client.set_topics(topics)  # a consumer without a subscription has no metadata
    return [TopicPartition(topic, number) for topic in topics for number in consumer.partitions_for_topic(topic) or ()]


def _consumer(connection: Connection) -> AIOKafkaConsumer:
    return AIOKafkaConsumer(
        **connection.aiokafka(),
        group_id=None,
        enable_auto_commit=False,
        fetch_max_wait_ms=50,
        max_partition_fetch_bytes=FETCH_BYTES,
    )
