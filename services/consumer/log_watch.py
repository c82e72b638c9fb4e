"""Whether the log is still the one that was read. Nothing of another log is served as if it followed.

A log may end before the offset that is to be read next (truncated, or created anew), begin after it (retention was
quicker than this group), or be another one of the same name. aiokafka would go on at its start and say nothing.
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

LOOK_S: Final = 0.2  # how soon a partition that was read to the end of its old log starts over
LOOKS_PER_ID: Final = 10  # how many looks pass between two questions for the topic's id
ANSWER_S: Final = 5.0
FOREIGN: Final = "the group's offset is one of a log that was deleted since"
_MARK: Final = "topic "  # before the id, in what is kept beside committed offsets


class Position(TopicPartitionState):  # type: ignore[misc]  # aiokafka ships no types
    """A position in a log that asks before it jumps to the log's start."""

    def __init__(self, assignment: Any, partition: int, out_of_range: Callable[[int], None]) -> None:
        super().__init__(assignment)
        self._partition = partition
        self._out_of_range = out_of_range

    def await_reset(self, strategy: int) -> None:
        """Begin at the log's start where nothing was ever committed; else fetch nothing until it is known why."""
        if not self.has_valid_position:
            super().await_reset(strategy)
        elif not self.paused:
            self.pause()
            self._out_of_range(self._partition)


class LogWatch:
    """Examines partitions that cannot be fetched from where they are to go on, and looks at the topic's id."""

    def __init__(self, consumer: Any, queues: PartitionQueues, topic: str, on_reset: OnLogReset) -> None:
        self._consumer = consumer
        self._queues = queues
        self._topic = topic
        self._on_reset = on_reset
        self._suspects: set[int] = set()
        """Partitions whose offset cannot be fetched."""
        self._told: WeakSet[PartitionQueue] = WeakSet()
        self._id: UUID | None = None

    def out_of_range(self, partition: int) -> None:
        """The broker has nothing at the partition's offset."""
        self._suspects.add(partition)

    def metadata(self) -> str:
        """Return what tells whose log committed offsets are of."""
        return f"{_MARK}{self._id}" if self._id else ""

    def is_foreign(self, metadata: str) -> bool:
        """Return whether offsets with this `metadata` are of another log."""
        return metadata.startswith(_MARK) and self._id is not None and metadata != self.metadata()

    async def run(self) -> None:
        """Look until cancelled."""
        looks = 0
        while True:
            await asyncio.sleep(LOOK_S)
            looks += 1
            if looks % LOOKS_PER_ID == 0:
                await self.look_at_id()
            for partition in list(self._suspects):
                await self._examine(partition)
            for partition, queue in list(self._queues.items()):
                if queue.cut_off:
                    await self._cut_off(partition, queue)

    async def look_at_id(self) -> None:
        """Compare the topic's id with the one before."""
        try:
            found = await asyncio.wait_for(topic_id(self._consumer._client, self._topic), ANSWER_S)
        except (KafkaError, TimeoutError) as unanswered:
            log.info("the id of %s is not known now: %r", self._topic, unanswered)
            return
        before, self._id = self._id, found or self._id
        if found is not None and before is not None and found != before:
            for partition, queue in self._queues.items():
                if queue.expected:
                    self._queues.cut_off(partition, "the topic was deleted and created anew")

    async def _examine(self, partition: int) -> None:
        at = TopicPartition(self._topic, partition)
        bounds = await self._bounds(at)
        if at not in self._consumer.assignment() or partition not in self._queues.held:
            self._suspects.discard(partition)  # whoever has it now examines it again
        elif bounds is not None:
            self._suspects.discard(partition)
            queue = self._queues[partition]
            offset = bounds[0] if queue.expected is None else queue.expected
            if reason := _reason(offset, *bounds):
                self._queues.cut_off(partition, queue.cut_off or reason)
            else:  # the broker had not caught up yet
                self._consumer.seek(at, offset)
                self._consumer.resume(at)

    async def _bounds(self, at: TopicPartition) -> tuple[int, int] | None:
        """Return the first offset and the next one to be written; None while the broker does not say."""
        try:
            async with asyncio.timeout(ANSWER_S):
                begin = await self._consumer.beginning_offsets([at])
                return begin[at], (await self._consumer.end_offsets([at]))[at]
        except (KafkaError, TimeoutError) as unanswered:
            log.info("the log of %s cannot be examined now: %r", at, unanswered)
            return None

    async def _cut_off(self, partition: int, queue: PartitionQueue) -> None:
        """Say it once; then begin at the log's start, once what was read of the old one is served."""
        at = TopicPartition(self._topic, partition)
        starts_over = self._on_reset is OnLogReset.START_OVER and not queue.cut_off_for_good
        if queue not in self._told:
            self._told.add(queue)
            then = "starts over" if starts_over else "is served no more (on_log_reset)"
            log.error(f"{self._topic}, partition {partition} {then}: {queue.cut_off}")
            if at in self._consumer.assignment():
                self._consumer.pause(at)
        if not starts_over or queue.waiting or not queue.is_idle or (bounds := await self._bounds(at)) is None:
            return
        if not queue.is_dropped and queue.is_open and at in self._consumer.assignment():
            self._queues.drop([partition])
            self._queues.open({partition: bounds[0]}, queue.epoch, queue.generation)
            self._queues[partition].uncommit()
            self._consumer.seek(at, bounds[0])
            self._consumer.resume(at)


def _reason(offset: int, begin: int, end: int) -> str:
    """Return why `offset` cannot be fetched from a log of `begin` to `end`; empty where it can."""
    if offset > end:
        return f"its log ends at {end}, before {offset}, where it would go on: it was truncated or created anew"
    if offset < begin:
        return (
            f"its log begins at {begin}: {begin - offset} offsets from {offset} on were deleted before they were served"
        )
    return ""
