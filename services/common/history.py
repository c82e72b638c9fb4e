"""What this stage wrote before it was started: the tail of its own output topics."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, Final

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError

from contracts.connection import Connection
from services.common.errors import ServiceError
from services.common.security import aiokafka_options
from services.common.seen import TAIL_PER_PARTITION

READ_DEADLINE_S: Final = 60.0

IdOf = Callable[[bytes], str | None]
"""Value of an output record → the id of the effect; None for a record of another stage."""


async def written_ids(connection: Connection, outputs: Mapping[str, IdOf], tail: int = TAIL_PER_PARTITION) -> list[str]:
    """Return the ids in the last `tail` records of each partition of each output topic.

    Raises ServiceError when the broker does not deliver them within the deadline.
    """
    try:
        async with asyncio.timeout(READ_DEADLINE_S):
            return [identity async for identity in _read(connection, outputs, tail)]
    except (KafkaError, TimeoutError) as missing:
        raise ServiceError(
            f"what was written to {', '.join(outputs)} could not be read back within {READ_DEADLINE_S:.0f} s "
            f"({type(missing).__name__}: {missing}); without it events could be doubled, so restart me"
        ) from missing


async def _read(connection: Connection, outputs: Mapping[str, IdOf], tail: int) -> AsyncIterator[str]:
    consumer = AIOKafkaConsumer(
        **aiokafka_options(connection), group_id=None, enable_auto_commit=False, fetch_max_wait_ms=50
    )
    await consumer.start()
    try:
        ends = await _seek_tails(consumer, outputs, tail)
        while ends:
            batch: dict[TopicPartition, list[Any]] = await consumer.getmany(*ends, timeout_ms=200)
            for partition, records in batch.items():
                for record in records:
                    identity = outputs[partition.topic](record.value) if record.value else None
                    if identity is not None:
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
