"""Detects that a partition has another log than before, so that the replica does not continue in the wrong log.

A log may end before the next offset to read, because it was truncated or re-created. It may begin after that offset,
because retention removed records before this group read them. aiokafka would continue at the log's start silently.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Final
from uuid import UUID
from weakref import WeakSet

from aiokafka.consumer.subscription_state import TopicPartitionState
from aiokafka.errors import KafkaError
from aiokafka.structs import TopicPartition

from services.consumer.interface import OnLogReset
from services.consumer.partition_queue import PartitionQueue, PartitionQueues
from services.consumer.topic_facts import topic_id

log = logging.getLogger(__name__)

CHECK_INTERVAL_S: Final = 0.2
CHECKS_PER_ID_QUERY: Final = 10  # the topic's id is queried at every tenth check
ANSWER_TIMEOUT_S: Final = 5.0
FOREIGN_OFFSET: Final = "the committed offset belongs to a log that was deleted"
_ID_PREFIX: Final = "topic "  # precedes the topic's id in the metadata of committed offsets


class Position(TopicPartitionState):  # type: ignore[misc]  # aiokafka ships no types
    """State of a partition in aiokafka. It reports an offset out of range, and does not jump to the log's start."""

    def __init__(self, assignment: Any, partition: int, on_out_of_range: Callable[[int], None]) -> None:
        super().__init__(assignment)
        self._partition, self._on_out_of_range = partition, on_out_of_range

    def await_reset(self, strategy: int) -> None:
        """Begin at the log's start if nothing was committed yet; else pause until the log is examined."""
        if not self.has_valid_position:
            super().await_reset(strategy)
        elif not self.paused:
            self.pause()
            self._on_out_of_range(self._partition)


class LogWatch:
    """Examines partitions whose next offset cannot be fetched, and checks the topic's id."""

    def __init__(self, consumer: Any, queues: PartitionQueues, topic: str, on_reset: OnLogReset) -> None:
        self._consumer, self._queues, self._topic, self._on_reset = consumer, queues, topic, on_reset
        self._suspects: set[int] = set()
        """Partitions whose next offset cannot be fetched."""
        self._reported_queues: WeakSet[PartitionQueue] = WeakSet()
        self._id: UUID | None = None

    def on_out_of_range(self, partition: int) -> None:
        """Examine the partition soon, because the broker does not have its next offset."""
        self._suspects.add(partition)

    def metadata(self) -> str:
        """Return the metadata of committed offsets, which identifies their log. Empty: the topic's id is unknown."""
        return f"{_ID_PREFIX}{self._id}" if self._id else ""

    def is_foreign(self, metadata: str) -> bool:
        """Return whether a committed offset with this `metadata` belongs to another log."""
        return metadata.startswith(_ID_PREFIX) and self._id is not None and metadata != self.metadata()

    async def run(self) -> None:
        """Check until cancelled."""
        checks = 0
        while True:
            await asyncio.sleep(CHECK_INTERVAL_S)
            checks += 1
            if checks % CHECKS_PER_ID_QUERY == 0:
                await self.check_topic_id()
            for partition in list(self._suspects):
                await self._examine(partition)
            for partition, queue in list(self._queues.items()):
                if queue.cut_off_reason:
                    await self._handle_cut_off(partition, queue)

    async def check_topic_id(self) -> None:
        """Query the topic's id. If it has changed, mark each partition that was read as cut off from its log."""
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT_S):
                new_id = await topic_id(self._consumer._client, self._topic)
        except (KafkaError, TimeoutError) as error:
            log.info("The id of topic %s is not known now: %r", self._topic, error)
            return
        old_id, self._id = self._id, new_id or self._id
        if new_id is not None and old_id is not None and new_id != old_id:
            for partition, queue in self._queues.items():
                if queue.next_fetch_offset:
                    self._queues.cut_off(partition, "the topic was deleted and re-created")

    async def _examine(self, partition: int) -> None:
        at = TopicPartition(self._topic, partition)
        bounds = await self._bounds(at)
        if at not in self._consumer.assignment() or partition not in self._queues.owned_partitions:
            self._suspects.discard(partition)  # its current owner examines it
        elif bounds is not None:
            self._suspects.discard(partition)
            self._queues.pass_over(self._consumer._coordinator.next_fetch_offsets)
            queue = self._queues[partition]
            offset = bounds[0] if queue.next_fetch_offset is None else queue.next_fetch_offset
            if reason := _reason(offset, *bounds):
                self._queues.cut_off(partition, queue.cut_off_reason or reason)
            else:  # the broker lagged behind and has the offset now
                self._consumer.seek(at, offset)
                self._consumer.resume(at)

    async def _bounds(self, at: TopicPartition) -> tuple[int, int] | None:
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT_S):
                begin = await self._consumer.beginning_offsets([at])
                return begin[at], (await self._consumer.end_offsets([at]))[at]
        except (KafkaError, TimeoutError) as error:
            log.info("The log of %s cannot be examined now: %r", at, error)
            return None

    async def _handle_cut_off(self, partition: int, queue: PartitionQueue) -> None:
        """Log it once. If the partition starts over, do so as soon as its backlog is served."""
        at = TopicPartition(self._topic, partition)
        starts_over = self._on_reset is OnLogReset.START_OVER
        if queue not in self._reported_queues:
            self._reported_queues.add(queue)
            then = "starts over" if starts_over else "is served no more (on_log_reset)"
            log.error(f"{self._topic}, partition {partition} {then}: {queue.cut_off_reason}")
            if at in self._consumer.assignment():
                self._consumer.pause(at)
        if not starts_over or queue.backlog or not queue.is_idle or (bounds := await self._bounds(at)) is None:
            return
        if not queue.is_dropped and queue.is_open and at in self._consumer.assignment():
            self._queues.drop([partition])
            self._queues.open({partition: bounds[0]}, queue.epoch, queue.generation)
            self._queues[partition].clear_committed()
            self._consumer.seek(at, bounds[0])
            self._consumer.resume(at)


def _reason(offset: int, begin: int, end: int) -> str:
    if offset > end:
        return f"its log ends at {end}, before the next offset {offset}: it was truncated or re-created"
    if offset < begin:
        return (
            f"its log begins at {begin}: {begin - offset} offsets from {offset} on were deleted before they were served"
        )
    return ""
