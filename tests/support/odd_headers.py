"""Write batches that Kafka accepts: header names that are not UTF-8, and records of 8 MiB compressed to 8 kB."""

import asyncio
import time
from typing import Any, Final

from aiokafka import AIOKafkaProducer
from aiokafka.record.default_records import _DefaultRecordBatchBuilderPy
from confluent_kafka import Producer

from contracts.topics import Topic, qualified

NAME: Final = b"\xff\xfe\xe4"


class NoText(str):
    """A header name with these bytes."""

    def encode(self, *_: Any) -> bytes:
        return NAME


def odd_batch(*values: bytes) -> _DefaultRecordBatchBuilderPy:
    """Return a batch of `values`. Every second record has such a header."""
    builder = _DefaultRecordBatchBuilderPy(2, 0, 0, -1, -1, -1, 1_000_000)
    for number, value in enumerate(values):
        builder.append(number, int(time.time() * 1000), b"odd", value, [(NoText(), b"1")] if number % 2 else [])
    return builder


def produce_bomb(kafka: str, namespace: str, topic: str, partition: int, codec: str = "gzip", *, mb: int = 8) -> None:
    """Write a record that decompresses to more bytes than our clients read, and wait until the broker has it."""
    sizes = {"message.max.bytes": 10**9, "queue.buffering.max.kbytes": 10**6}
    producer = Producer({"bootstrap.servers": kafka, "compression.type": codec, **sizes})
    producer.produce(qualified(namespace, topic), bytes(mb * 2**20), partition=partition)
    assert producer.flush(60) == 0, "the broker did not acknowledge"


def produce_odd(kafka: str, namespace: str, topic: Topic, *values: bytes, partition: int = 0) -> None:
    """Write `values` as one such batch and wait until the broker has it."""

    async def write() -> None:
        producer = AIOKafkaProducer(bootstrap_servers=kafka)
        await producer.start()
        try:
            batch = producer.create_batch()
            for value in values:
                batch.append(key=None, value=value, timestamp=None)
            batch._builder = odd_batch(*values)
            await (await producer.send_batch(batch, qualified(namespace, topic), partition=partition))
        finally:
            await producer.stop()

    asyncio.run(write())
