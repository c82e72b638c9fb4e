"""Helpers of the tests on a real Kafka."""

import time
from collections.abc import Callable, Iterable
from typing import TypeVar

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from contracts.connection import Connection
from contracts.topics import Topic, qualified
from tailpack.local.topics import create_topics as create

T = TypeVar("T")

DEADLINE_S = 60.0
"""Deadline for events without a time guarantee, in seconds. It is long enough for a busy machine."""


def create_topics(kafka: str, namespace: str, *partitions: int) -> None:
    """Create every topic of a run. partitions: of payments.requested, and of the topics after it."""
    create(Connection(bootstrap_servers=kafka, namespace=namespace), *partitions)


def produce(
    kafka: str,
    namespace: str,
    topic: Topic,
    values: Iterable[bytes],
    *,
    key: bytes | None = None,
    headers: dict[str, str | bytes] | None = None,
    partition: int = -1,
) -> None:
    """Write `values` and wait until the broker has them."""
    room = {"queue.buffering.max.messages": 1_000_000}
    producer = Producer({"bootstrap.servers": kafka, "enable.idempotence": True, "linger.ms": 1, **room})
    for value in values:
        producer.produce(
            qualified(namespace, topic), value, key=key, partition=partition, headers=list((headers or {}).items())
        )
    assert producer.flush(DEADLINE_S) == 0, "the broker did not acknowledge"


def read_all(kafka: str, namespace: str, topic: Topic, *, deadline_s: float = DEADLINE_S) -> list[Message]:
    """Return every committed record that is in `topic` now."""
    consumer = Consumer(
        {
            "bootstrap.servers": kafka,
            "group.id": "test-reader",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
        }
    )
    name = qualified(namespace, topic)
    try:
        partitions = consumer.list_topics(name, timeout=deadline_s).topics[name].partitions
        consumer.assign([TopicPartition(name, partition, 0) for partition in partitions])
        records: list[Message] = []
        at_end: set[int] = set()
        deadline = time.monotonic() + deadline_s
        while len(at_end) < len(partitions):
            assert time.monotonic() < deadline, f"{name} was not read to its end within {deadline_s} s"
            record = consumer.poll(0.2)
            if record is None:
                continue
            if record.error() is None:
                records.append(record)
            elif record.error().code() == KafkaError._PARTITION_EOF:  # any other passes: the client tries again
                at_end.add(record.partition())
        return records
    finally:
        consumer.close()


def wait_for(
    condition: Callable[[], T | None], what: str, *, deadline_s: float = DEADLINE_S, every_s: float = 0.05
) -> T:
    """Return the first truthy value of `condition`; fail with `what` at the deadline."""
    deadline = time.monotonic() + deadline_s
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, f"not within {deadline_s} s: {what}"
        time.sleep(every_s)


def admin(kafka: str) -> AdminClient:
    """Return an admin client."""
    return AdminClient({"bootstrap.servers": kafka})


def end_offsets(kafka: str, topic: str, *, deadline_s: float = DEADLINE_S) -> list[int]:
    """Return the end offset of each partition of `topic`."""
    reader = Consumer({"bootstrap.servers": kafka, "group.id": "test-reader"})
    try:
        partitions = reader.list_topics(topic, timeout=deadline_s).topics[topic].partitions
        return [
            reader.get_watermark_offsets(TopicPartition(topic, partition), timeout=deadline_s)[1]
            for partition in partitions
        ]
    finally:
        reader.close()
