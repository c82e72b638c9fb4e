"""The writes of a replica to Kafka: its outputs, then the offsets of what is done, and its progress."""

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

import msgspec
from aiokafka import AIOKafkaProducer, errors
from aiokafka.structs import OffsetAndMetadata, TopicPartition

from contracts.clock import steady_s
from contracts.progress import PROGRESS_INTERVAL_S, Progress
from services.common import traces
from services.consumer.connections import Client
from services.consumer.partition_queue import PartitionQueue, PartitionQueues

log = logging.getLogger(__name__)

LEADERLESS_S: Final = 120.0
"""How long an output may wait for a leader, or for its acknowledgement, before the replica gives up; none of it has
been committed, so it is served again."""
LOOK_S: Final = 1.0
"""Between two looks at the oldest output. They are counted: a process that was frozen finds any time gone at once."""
FENCED: Final = (
    errors.UnknownMemberIdError,
    errors.IllegalGenerationError,
    errors.RebalanceInProgressError,
    errors.CommitFailedError,
)
"""Answers that mean: the group has moved on. aiokafka has taken note and rejoins."""
LEADERLESS: Final = (errors.KafkaTimeoutError, errors.UnknownTopicOrPartitionError)
"""The producer has found no room, or no partition, within the time of a request."""
LAST_COMMIT_S: Final = 2.0
"""How long the commit before a handover is tried; below the rebalance time-out, which costs the membership."""
RETRY_S: Final = 0.05


class Output:
    """A producer that counts what is not yet acknowledged. The first output that fails for good sets `failed`."""

    def __init__(self, connection: Mapping[str, Any], failed: "asyncio.Future[None]") -> None:
        self._producer = AIOKafkaProducer(**connection, acks="all", enable_idempotence=True, linger_ms=0)
        Client.adopt(self._producer.client)
        self._producer._message_accumulator._batch_ttl = LEADERLESS_S  # aiokafka would take the time of a request
        self._failed = failed
        self._looks = 0
        self._outstanding: dict[asyncio.Future[None], int] = {}
        """Output → look before which it was sent, the oldest first."""
        self._drained = asyncio.Event()
        self._drained.set()

    async def start(self) -> None:
        """Connect. May be called again after an error."""
        await self._producer.start()

    async def partitions_of(self, topic: str) -> int:
        """Return how many partitions `topic` has. Raises KafkaError when it does not exist."""
        return len(await self._producer.partitions_for(topic))

    async def send(self, topic: str, key: bytes | None, value: bytes) -> "asyncio.Future[None]":
        """Hand one record to the producer; the future is done once the broker has it."""
        future = await self._placed(topic, key, value)
        self._outstanding[future] = self._looks
        self._drained.clear()
        future.add_done_callback(self._settled)
        return future

    async def _placed(self, topic: str, key: bytes | None, value: bytes) -> "asyncio.Future[None]":
        clock = asyncio.get_running_loop().time
        give_up_s = clock() + LEADERLESS_S
        while True:
            try:
                future: asyncio.Future[None] = await self._producer.send(
                    topic, value=value, key=key, headers=traces.headers()
                )
            except errors.MessageSizeTooLargeError:
                raise  # the client refuses it: the fault of this record alone
            except errors.KafkaError as wrong:
                if isinstance(wrong, LEADERLESS) and clock() < give_up_s:
                    continue  # it has waited for the time of a request
                self._fail(wrong)
                raise
            return future

    def limit_batches(self, largest: int) -> None:
        """Send no more than `largest` bytes together."""
        limit_batches(self._producer, largest)

    async def drained(self) -> None:
        """Wait until everything sent so far is acknowledged."""
        await self._drained.wait()

    async def watch(self) -> None:
        """Raise KafkaTimeoutError once an output has waited too long: the producer itself never gives up on one."""
        while True:
            await asyncio.sleep(LOOK_S)
            self._looks += 1
            oldest = next(iter(self._outstanding.values()), self._looks)
            if (self._looks - oldest) * LOOK_S > LEADERLESS_S:
                raise errors.KafkaTimeoutError(f"an output was not acknowledged within {LEADERLESS_S:g} s")

    async def stop(self) -> None:
        """Send what is left and disconnect."""
        await self._producer.stop()

    def _settled(self, sent: "asyncio.Future[None]") -> None:
        del self._outstanding[sent]
        if not self._outstanding:
            self._drained.set()
        if not sent.cancelled() and (error := sent.exception()):
            self._fail(error)

    def _fail(self, wrong: BaseException) -> None:
        if not self._failed.done():
            self._failed.set_exception(wrong)


def limit_batches(producer: AIOKafkaProducer, largest: int) -> None:
    """Have `producer` send no more than `largest` bytes together, but for a record that is larger by itself."""
    accumulator = producer._message_accumulator
    accumulator._batch_size = min(accumulator._batch_size, largest)


class Committer:
    """Commits what the queues have done. Held: no commit leaves.

    aiokafka sends JoinGroup and OffsetCommit on one connection, which the broker serves in order. A commit made while
    joining is answered after the round, as one of an old generation, and aiokafka then throws its member id away.
    A member without a generation must be silent too: an empty group would accept its commit.
    """

    def __init__(self, coordinator: Any, queues: PartitionQueues, topic: str, interval_s: float) -> None:
        self._coordinator = coordinator
        self._queues = queues
        self._topic = topic
        self._interval_s = interval_s
        self.metadata: Callable[[], str] = str
        """Metadata kept beside each offset."""
        self.confirmed_s = steady_s()
        """When all that was done was with the group last (of steady_s)."""
        self._lock = asyncio.Lock()
        self._generation = -1

    def open(self, generation: int) -> None:
        """Commit in the name of `generation` from now on."""
        self._generation = generation

    def hold(self) -> None:
        """Commit nothing until the next `open`."""
        self._generation = -1

    async def run(self) -> None:
        """Commit at every interval, until cancelled."""
        while True:
            await asyncio.sleep(self._interval_s)
            await self.commit()

    async def last_commit(self, partitions: Collection[int]) -> bool:
        """Commit what `partitions` have done before others take them; return whether that is with the group."""
        try:
            async with asyncio.timeout(LAST_COMMIT_S):
                # The coordinator moves or restarts, and nothing tells when it is back.
                while not (done := await self.commit(partitions)) and self._may_commit():  # noqa: ASYNC110
                    await asyncio.sleep(RETRY_S)
        except TimeoutError:
            log.warning("the last commit was not answered within %g s; its events may be served again", LAST_COMMIT_S)
            return False
        return done

    async def commit(self, partitions: Collection[int] | None = None) -> bool:
        """Commit; return whether all that is done is now with the group. A refusal loses nothing: events repeat.

        partitions: None for all that are held.
        """
        async with self._lock:
            queues, offsets = self._committable(partitions)
            if not offsets:
                self.confirmed_s = steady_s()
                return True
            # Checked and sent without a pause between: aiokafka's own commit() may wait for a coordinator first, and
            # would then send these offsets under whatever generation it has by that time.
            if not self._may_commit():
                return False
            try:
                await self._write(queues, offsets)
            except FENCED as moved_on:
                log.info(
                    "commit refused (%s): the events since the last one will be served again", type(moved_on).__name__
                )
                return False
            except errors.KafkaError as away:
                if not away.retriable:
                    raise
                return False
            for partition, offset in offsets.items():
                queues[partition].committed(offset)
            self.confirmed_s = steady_s()
            return True

    async def _write(self, queues: Mapping[int, PartitionQueue], offsets: Mapping[int, int]) -> None:
        """Give the group these offsets of these queues. Raises KafkaError: it does not have them."""
        await self._coordinator._do_commit_offsets(None, self._at(offsets))

    def _at(self, offsets: Mapping[int, int]) -> dict[TopicPartition, OffsetAndMetadata]:
        said = self.metadata()
        return {TopicPartition(self._topic, p): OffsetAndMetadata(offset, said) for p, offset in offsets.items()}

    def _committable(self, partitions: Collection[int] | None) -> tuple[dict[int, PartitionQueue], dict[int, int]]:
        queues = {p: queue for p, queue in self._queues.items() if partitions is None or p in partitions}
        offsets = {p: offset for p, queue in queues.items() if (offset := queue.committable) is not None}
        return queues, offsets

    def _may_commit(self) -> bool:
        return bool(0 < self._generation == self._coordinator.generation and not self._coordinator.joining)


class ProgressReporter:
    """Writes one Progress at a time: while the broker is away, reports are skipped and not piled up."""

    def __init__(self, output: Output, topic: str, snapshot: Callable[[], Progress]) -> None:
        self._output = output
        self._topic = topic
        self._snapshot = snapshot
        self._changed = asyncio.Event()
        self._under_way: asyncio.Future[None] | None = None

    def changed(self) -> None:
        """Report at once: the replica's state has changed."""
        self._changed.set()

    async def run(self) -> None:
        """Report until cancelled."""
        while True:
            try:
                await asyncio.wait_for(self._changed.wait(), PROGRESS_INTERVAL_S)
            except TimeoutError:
                if self._under_way is not None and not self._under_way.done():
                    continue
            self._changed.clear()
            await self.report()

    async def report(self) -> None:
        """Write one report."""
        progress = self._snapshot()
        value = msgspec.json.encode(progress)
        self._under_way = await self._output.send(self._topic, progress.replica.encode(), value)
