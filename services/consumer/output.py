"""The records that a replica writes to Kafka: outputs, offsets of events whose outputs are acknowledged, progress."""

import asyncio
import logging
import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

import msgspec
from aiokafka import AIOKafkaProducer, errors
from aiokafka.structs import OffsetAndMetadata, TopicPartition

from contracts.clock import monotonic_s
from contracts.progress import PROGRESS_INTERVAL_S, Progress
from services.common import traces
from services.consumer.connections import Client
from services.consumer.partition_queue import PartitionQueue, PartitionQueues

log = logging.getLogger(__name__)

ACK_TIMEOUT_S: Final = 120.0
"""How long an output may wait for a leader, or for its acknowledgement. After that the replica ends. The event is not
committed, so it is served again."""
CHECK_INTERVAL_S: Final = 1.0
"""Pause between two checks of the oldest output, seconds. Checks are counted, because a process that was frozen would
exceed a time limit at its first check."""
FENCED_ERRORS: Final = (
    errors.UnknownMemberIdError,
    errors.IllegalGenerationError,
    errors.RebalanceInProgressError,
    errors.CommitFailedError,
)
"""Errors of a commit under an old generation. aiokafka handles them too, and rejoins."""
UNANSWERED_ERRORS: Final = (errors.RequestTimedOutError, errors.KafkaConnectionError, errors.CorrelationIdError)
"""Errors of a request that the broker may have received, and may carry out at any later time."""
NO_LEADER_ERRORS: Final = (errors.KafkaTimeoutError, errors.UnknownTopicOrPartitionError)
"""Errors of a producer that has found no buffer space, or no partition, within the request time-out."""
LAST_COMMIT_TIMEOUT_S: Final = 2.0
"""How long the commit before a handover is retried. It must be below the rebalance time-out."""
RETRY_INTERVAL_S: Final = 0.05


class Output:
    """A producer that tracks unacknowledged outputs. The first output that fails for good sets `failure`."""

    def __init__(self, connection: Mapping[str, Any], failure: "asyncio.Future[None]") -> None:
        self.producer = AIOKafkaProducer(**connection, acks="all", enable_idempotence=True, linger_ms=0)
        Client.adopt(self.producer.client)
        self.producer._message_accumulator._batch_ttl = ACK_TIMEOUT_S  # aiokafka's default is the request time-out
        self._failure = failure
        self._checks = 0
        self._unacknowledged: dict[asyncio.Future[None], int] = {}
        """Output → number of checks before it was sent, oldest first."""
        self.all_acknowledged = asyncio.Event()
        self.all_acknowledged.set()

    async def send(self, topic: str, key: bytes | None, value: bytes) -> "asyncio.Future[None]":
        """Send one record. The future is done once the broker has acknowledged it."""
        future = await self._enqueue(topic, key, value)
        self._unacknowledged[future] = self._checks
        self.all_acknowledged.clear()
        future.add_done_callback(self._on_acknowledged)
        return future

    async def _enqueue(self, topic: str, key: bytes | None, value: bytes) -> "asyncio.Future[None]":
        clock = asyncio.get_running_loop().time
        give_up_s = clock() + ACK_TIMEOUT_S
        while True:
            try:
                future: asyncio.Future[None] = await self.producer.send(
                    topic, value=value, key=key, headers=traces.headers()
                )
            except errors.MessageSizeTooLargeError:
                raise  # only this record is invalid
            except errors.KafkaError as error:
                if isinstance(error, NO_LEADER_ERRORS) and clock() < give_up_s:
                    continue  # at once: the producer has waited for the request time-out already
                self._fail(error)
                raise
            return future

    async def watch(self) -> None:
        """Raise KafkaTimeoutError once an output has waited too long. The producer itself retries without limit."""
        while True:
            await asyncio.sleep(CHECK_INTERVAL_S)
            self._checks += 1
            oldest = next(iter(self._unacknowledged.values()), self._checks)
            if (self._checks - oldest) * CHECK_INTERVAL_S > ACK_TIMEOUT_S:
                raise errors.KafkaTimeoutError(f"an output was not acknowledged within {ACK_TIMEOUT_S:g} s")

    def _on_acknowledged(self, sent: "asyncio.Future[None]") -> None:
        del self._unacknowledged[sent]
        if not self._unacknowledged:
            self.all_acknowledged.set()
        if not sent.cancelled() and (error := sent.exception()):
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        if not self._failure.done():
            self._failure.set_exception(error)


def limit_batches(producer: AIOKafkaProducer, max_bytes: int) -> None:
    """Limit the batches of `producer` to `max_bytes`. A larger record is still sent, alone in its batch."""
    accumulator = producer._message_accumulator
    accumulator._batch_size = min(accumulator._batch_size, max_bytes)


class Committer:
    """Commits the offsets of done events, in the name of one generation. While suspended, it sends no commit.

    aiokafka sends JoinGroup and OffsetCommit on one connection, which the broker serves in order. A commit that is
    sent during a join is refused after the rebalance, as its generation is old. Then aiokafka discards the member id.
    A member without a generation must not commit either, because an empty group would accept it.
    """

    def __init__(
        self, coordinator: Any, queues: PartitionQueues, topic: str, interval_s: float, max_age_s: float = math.inf
    ) -> None:
        self._coordinator, self._queues, self._topic = coordinator, queues, topic
        self._interval_s, self._max_age_s = interval_s, max_age_s
        self.metadata: Callable[[], str] = str
        """Returns the metadata that is stored with each committed offset."""
        self.last_confirmed_s = monotonic_s()
        """When the group last had the offsets of all done events (by `monotonic_s`)."""
        self._lock = asyncio.Lock()
        self._generation = -1
        self._unanswered: dict[int, int] = {}
        """Partition → offset of a commit of this generation that was sent and not answered."""

    def resume(self, generation: int) -> None:
        """Commit in the name of `generation` from now on."""
        self._generation = generation
        self._unanswered = {}  # the group refuses what arrives late from an older generation

    def suspend(self) -> None:
        """Commit nothing until the next `resume`."""
        self._generation = -1

    async def run(self) -> None:
        """Commit at every interval, or earlier on request, until cancelled."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._interval_s):
                    await self._queues.early_commit.wait()
            self._queues.early_commit.clear()
            if not await self.commit() and self._queues.early_commit.is_set():
                await asyncio.sleep(self._interval_s)

    async def last_commit(self) -> bool:
        """Commit before a handover, with retries. Return whether the group has the offsets of all done events."""
        try:
            async with asyncio.timeout(LAST_COMMIT_TIMEOUT_S):
                # A coordinator that moves or restarts sends no event when it is back.
                while not (is_committed := await self.commit()) and self._may_commit():  # noqa: ASYNC110
                    await asyncio.sleep(RETRY_INTERVAL_S)
                return is_committed
        except TimeoutError:
            log.warning("No commit was confirmed within %g s; done events may be served again", LAST_COMMIT_TIMEOUT_S)
            return False

    async def commit(self) -> bool:
        """Commit. Return whether the group has all offsets of done events. If not for long, no event starts."""
        async with self._lock:
            self._queues.pass_over(self._coordinator.next_fetch_offsets)
            done = {p: offset for p, queue in self._queues.items() if (offset := queue.committable_offset) is not None}
            if is_committed := not done or await self._commit(done):
                self.last_confirmed_s = monotonic_s()
            if done or self._queues.is_held:  # else no event waits for a commit
                self._queues.hold(monotonic_s() - self.last_confirmed_s > self._max_age_s)
            return is_committed

    async def _commit(self, done: Mapping[int, int]) -> bool:
        # The broker may carry out an unanswered commit later. Only the same offset is safe until a rebalance voids it.
        offsets = {p: offset for p, offset in done.items() if self._unanswered.get(p, offset) == offset}
        # Checked and sent without an await in between. aiokafka's own commit() may wait for a coordinator first,
        # and then sends these offsets under its generation of that time.
        if not offsets or not self._may_commit():
            return False
        queues = {p: self._queues[p] for p in offsets}
        try:
            await self._write(queues, offsets)
        except FENCED_ERRORS as error:
            log.info("The group refused a commit (%s); done events may be served again", type(error).__name__)
            return False
        except (*UNANSWERED_ERRORS, asyncio.CancelledError) as error:
            self._unanswered |= offsets
            self._coordinator.request_rejoin()
            if isinstance(error, asyncio.CancelledError):
                raise
            return False
        except errors.KafkaError as error:
            if not error.retriable:
                raise
            return False
        for partition, offset in offsets.items():
            queues[partition].mark_committed(offset)
        return offsets == done

    async def _write(self, queues: Mapping[int, PartitionQueue], offsets: Mapping[int, int]) -> None:
        await self._coordinator._do_commit_offsets(None, self._with_metadata(offsets))

    def _with_metadata(self, offsets: Mapping[int, int]) -> dict[TopicPartition, OffsetAndMetadata]:
        metadata = self.metadata()
        return {TopicPartition(self._topic, p): OffsetAndMetadata(offset, metadata) for p, offset in offsets.items()}

    def _may_commit(self) -> bool:
        return bool(0 < self._generation == self._coordinator.generation and not self._coordinator.is_joining)


TOPIC_QUERY_MS: Final = 500  # pause between two queries for a progress topic that is missing


class ProgressReporter:
    """Writes reports one at a time, with a producer of its own, so that no output waits for a report."""

    snapshot: Callable[[], Progress]
    """Returns the report to write."""

    def __init__(self, connection: Mapping[str, Any], topic: str, slowdown: Callable[[], float]) -> None:
        self._slowdown = slowdown
        self.producer = AIOKafkaProducer(**{**connection, "retry_backoff_ms": TOPIC_QUERY_MS})
        Client.adopt(self.producer.client)
        self._topic = topic
        self.report_requested = asyncio.Event()
        """Set when the replica's state has changed: then a report is written at once."""
        self.lost = 0
        """Number of reports that could not be written."""
        self.problem = ""
        """Why the newest report could not be written. Empty: it was written."""

    async def run(self) -> None:
        """Write reports until cancelled."""
        while True:
            self.report_requested.clear()
            await self.report()
            with suppress(TimeoutError):
                async with asyncio.timeout(PROGRESS_INTERVAL_S * self._slowdown()):
                    await self.report_requested.wait()

    async def report(self) -> None:
        """Write one report, and return when the broker has it or it is lost."""
        progress = self.snapshot()
        try:
            await self.producer.send_and_wait(self._topic, msgspec.json.encode(progress), progress.replica.encode())
        except errors.KafkaError as error:
            self.lost += 1
            if not self.problem:
                log.warning("Cannot write progress reports to %s (%r); events are still served", self._topic, error)
            self.problem = f"progress reports cannot be written to {self._topic}: {error!r}"
        else:
            self.problem = ""
