"""What a consumer hands to its service."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Event:
    """One record of the input topic."""

    topic: str
    """As the broker names it, namespace included."""
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes]]
    timestamp_us: int
    """The record's own (µs since the epoch, in whole milliseconds)."""
    received_us: int
    """When it was polled (µs since the epoch)."""
    epoch: int
    """Plan epoch that the partition was taken or kept under; 0 without a plan."""


Later = Awaitable[Any] | None
"""None: the event is done. An awaitable: it will be, once that completes; the next event need not wait for it. What it
raises is treated as if the handler had raised it."""
Handler = Callable[[Event], Awaitable[Later]]
"""Handles one event. What it raises, and what it returned later on, goes to `on_error` or ends the consumer."""
BatchHandler = Callable[[Sequence[Event]], Awaitable[Later]]
"""Handles events of one partition that follow each other."""


def event_of(record: Any, received_us: int, epoch: int) -> Event:
    """Return aiokafka's record as an event."""
    return Event(
        record.topic,
        record.partition,
        record.offset,
        record.key,
        record.value,
        record.headers,
        record.timestamp * 1000,
        received_us,
        epoch,
    )
