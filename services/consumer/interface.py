"""What a service tells the consumer, and what it gets from it."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from contracts.delivery import OUR_DELIVERIES, Delivery


class ReplicaError(Exception):
    """The replica cannot start or go on. The message is one sentence that says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Topics:
    """What the consumer reads and writes, by the names the broker knows."""

    group: str
    events: str
    """The one topic whose partitions are planned."""
    plans: str
    """PlanRecord; one partition, compacted."""
    progress: str
    """Progress; one partition."""
    others: Mapping[str, int] = field(default_factory=dict)
    """Further topics that must be there before it starts, with the least number of partitions they must have."""


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """Lengths of time in seconds. Raises ValueError naming what is wrong."""

    heartbeat_s: float = 0.5
    """How often the member shows that it lives. Plans do not wait for it."""
    session_s: float = 6.0
    """After this long without a heartbeat the group takes a member for dead."""
    rebalance_timeout_s: float = 10.0
    """A member that does not rejoin within it is out of the group."""
    commit_interval_s: float = 0.1
    """Pause between two commits: what a crash repeats at most, apart from events in flight."""
    drain_s: float = 8.0
    """When told to stop: how long it serves on until others have taken its partitions; then it leaves all the same.
    Where no broker answers it does not wait."""
    delivery: Delivery = Delivery.INCREMENTAL
    concurrency: int = 1
    """Events (or batches) handled side by side, over all partitions."""
    concurrency_per_partition: int = 1
    """… of one partition. Above 1 its events still start in order, and those with the same key never overlap."""
    batch_size: int = 1
    """Events of one partition that `handle_batch` gets at most; it never waits for a batch to fill."""

    def __post_init__(self) -> None:
        if not 0 < self.heartbeat_s < self.session_s:
            raise ValueError(f"heartbeat_s {self.heartbeat_s} must lie between 0 and session_s {self.session_s}")
        for name in (
            "commit_interval_s",
            "rebalance_timeout_s",
            "concurrency",
            "concurrency_per_partition",
            "batch_size",
        ):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} {getattr(self, name)} must be positive")
        if self.delivery not in OUR_DELIVERIES:
            raise ValueError(f"delivery {self.delivery} is another runtime's; known are {', '.join(OUR_DELIVERIES)}")
        if self.drain_s < 0:
            raise ValueError(f"drain_s {self.drain_s} must not be negative")


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
