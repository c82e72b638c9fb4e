"""The reading back before a stage starts: how much of its input may come again, and what it wrote for that.

Whatever else the topics hold, a foreign record, a malformed one, a marker of a transaction, is passed over and counted.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError

from contracts.connection import Connection
from contracts.validation import DECODE_ERRORS
from services.common.records import ServiceError

READ_DEADLINE_S: Final = 60.0
FETCH_BYTES: Final = 524_288  # of each partition at once: what is fetched and not yet taken is memory

BATCH: Final = 1000

IdOf = Callable[[bytes], str | None]
"""Value of an output record → the id of the effect; None for a record of another stage. Raises DECODE_ERRORS."""
Take = Callable[[Any], None]
"""Takes a record that was read: topic, key, value. Raises DECODE_ERRORS for one that is passed over."""

_log = logging.getLogger(__name__)


def identity_in(field: str, make: Callable[[str], str] = str) -> IdOf:
    """Return the function that reads an effect's id from its record: `make` of its text field `field`."""
    decode = msgspec.json.Decoder(msgspec.defstruct("Identity", [(field, str)])).decode

    def identity(value: bytes) -> str:
        return make(getattr(decode(value), field))

    return identity


async def uncommitted(connection: Connection, group: str, inputs: Iterable[str], most: int) -> int:
    """Return how many records of `inputs` may be read again and may have been processed before.

    Of each partition: everything from the offset that `group` has committed, and not above `most`, since no stage
    takes more than that beyond it. Raises KafkaError.
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
        await admin.close()
        await consumer.stop()
    begins = {tp: max(starts[tp], committed[tp].offset if tp in committed else 0) for tp in partitions}
    return sum(min(most, max(0, ends[tp] - begins[tp])) for tp in partitions)


async def read_tails(connection: Connection, tails: Mapping[str, int], take: Take) -> int:
    """Give `take` the records with a value at the last offsets of each partition; return how many were passed over.

    tails: topic → how many offsets. Raises ServiceError when the broker does not deliver them within the deadline.
    """
    try:
        async with asyncio.timeout(READ_DEADLINE_S):
            return await _read(connection, tails, take)
    except (KafkaError, TimeoutError) as missing:
        raise ServiceError(
            f"what was written to {', '.join(tails)} could not be read back within {READ_DEADLINE_S:.0f} s "
            f"({type(missing).__name__}: {missing}); without it events could be doubled, so restart me"
        ) from missing


async def _read(connection: Connection, tails: Mapping[str, int], take: Take) -> int:
    consumer = _consumer(connection)
    await consumer.start()
    passed_over = 0
    try:
        ends = await _seek_tails(consumer, tails)
        while ends:
            batch: dict[TopicPartition, list[Any]] = await consumer.getmany(*ends, timeout_ms=200, max_records=BATCH)
            for partition, records in batch.items():
                for record in records:
                    try:
                        if record.value is not None:
                            take(record)
                    except DECODE_ERRORS as wrong:
                        passed_over += 1
                        where = f"{partition.topic}/{partition.partition} at offset {record.offset}"
                        _log.warning("passed over what I did not write, or cannot read, in %s (%s)", where, wrong)
                await asyncio.sleep(0)  # a long tail leaves room for everything else that the process does
            ends = {tp: end for tp, end in ends.items() if await consumer.position(tp) < end}
    finally:
        await consumer.stop()
    return passed_over


async def _seek_tails(consumer: AIOKafkaConsumer, tails: Mapping[str, int]) -> dict[TopicPartition, int]:
    """Assign every partition that holds records, its topic's tail before its end. Returns where each ends."""
    partitions = await _partitions(consumer, tails)
    starts = await consumer.beginning_offsets(partitions)
    ends = {tp: end for tp, end in (await consumer.end_offsets(partitions)).items() if end > starts[tp]}
    consumer.assign(list(ends))
    for tp, end in ends.items():
        consumer.seek(tp, max(starts[tp], end - tails[tp.topic]))
    return ends


async def _partitions(consumer: AIOKafkaConsumer, topics: Iterable[str]) -> list[TopicPartition]:
    await consumer._client.set_topics(topics)  # a consumer without subscription knows no topics
    return [TopicPartition(topic, number) for topic in topics for number in consumer.partitions_for_topic(topic) or ()]


def _consumer(connection: Connection) -> AIOKafkaConsumer:
    return AIOKafkaConsumer(
        **connection.aiokafka(),
        group_id=None,
        enable_auto_commit=False,
        fetch_max_wait_ms=50,
        max_partition_fetch_bytes=FETCH_BYTES,
    )
