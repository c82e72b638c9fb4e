"""Reads and writes single partitions of topics, for commands. Clients are imported only where they are needed."""

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from tailpack.errors import TailpackError

if TYPE_CHECKING:
    from contracts.connection import Connection

DEADLINE_S: Final = 15.0
POLL_S: Final = 0.5
BATCH: Final = 20_000


def check_topic(connection: "Connection", topic: str, remedy: str = "create it with tailpack topics create") -> None:
    """Raise TailpackError unless the topic exists."""
    from contracts.preflight import PreflightError, TopicNeed, check_topics  # noqa: PLC0415

    try:
        check_topics(connection, {topic: TopicNeed(remedy=remedy)}, DEADLINE_S)
    except PreflightError as error:
        raise TailpackError(str(error)) from error


def follow(connection: "Connection", topic: str, partition: int = 0, **start: int) -> Iterator[tuple[list[Any], bool]]:
    """Yield new records, and whether the end was reached, for ever. start: `begin` (an offset) or `tail`.

    Raises TailpackError if the first end is not reached in time.
    """
    from contracts.record_reader import BEGINNING, RecordReader  # noqa: PLC0415

    begins = {(topic, partition): start.pop("begin", BEGINNING)}
    reader, deadline_s = RecordReader(connection, begins, wait_ms=250, **start), time.monotonic() + DEADLINE_S
    try:
        while True:
            records = reader.read(BATCH, POLL_S)
            is_at_end = reader.is_at_end()
            if not is_at_end and time.monotonic() > deadline_s:
                raise TailpackError(f"{topic} was not read to its end: {reader.error or 'its broker is silent'}")
            deadline_s += DEADLINE_S if is_at_end else 0.0
            yield records, is_at_end
    finally:
        reader.close()


def write(connection: "Connection", topic: str, value: bytes | None, **record: Any) -> None:
    """Write a record, and wait until the brokers have stored it. Raises TailpackError. record: key, partition …"""
    from confluent_kafka import KafkaException, Producer  # noqa: PLC0415

    from contracts.preflight import client_config  # noqa: PLC0415

    errors: list[Any] = ["no answer"]
    try:
        producer = Producer(client_config(connection, message_timeout_ms=int(DEADLINE_S * 1000)))
        note = lambda error, _: errors.__setitem__(0, error and error.str())  # noqa: E731
        producer.produce(topic, value, on_delivery=note, **record)
        producer.flush(DEADLINE_S)
    except KafkaException as error:
        errors[0] = error.args[0].str()
    if errors[0]:
        raise TailpackError(f"{topic} at {connection.bootstrap_servers} was not written: {errors[0]}")
