"""The way of the events in a replica: polled into the partition queues, and served from them as the options say."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from aiokafka.errors import (
    GroupAuthorizationFailedError,
    KafkaError,
    TopicAuthorizationFailedError,
    UnsupportedVersionError,
)
from aiokafka.structs import TopicPartition

from contracts.clock import now_us
from contracts.progress import ServiceTimes
from services.consumer.interface import BatchHandler, Event
from services.consumer.lease import Lease
from services.consumer.partition_queue import PartitionQueue, PartitionQueues, Taken

log = logging.getLogger(__name__)

OnError = Callable[[Event, Exception], Awaitable[None]]

POLL_MS: Final = 1000
"""A poll ends as soon as something is there."""
TROUBLE_S: Final = 0.2
"""aiokafka has waited for its own retries already; this keeps a lasting trouble from turning into a busy loop."""
FATAL: Final = (GroupAuthorizationFailedError, TopicAuthorizationFailedError, UnsupportedVersionError)


class Poller:
    """The one reader of the consumer."""

    def __init__(self, consumer: Any, queues: PartitionQueues, topic: str) -> None:
        self._consumer = consumer
        self._queues = queues
        self._topic = topic
        queues.on_full = self._limit

    async def run(self) -> None:
        """Poll until cancelled."""
        while True:
            try:
                batches = await self._consumer.getmany(timeout_ms=POLL_MS)
            except KafkaError as trouble:
                if isinstance(trouble, FATAL) or self._consumer._coordinator._coordination_task.done():
                    raise
                log.warning("polling is interrupted: %s", trouble)
                await asyncio.sleep(TROUBLE_S)
                continue
            received_us = now_us()
            for at, records in batches.items():
                self._queues.put(at.partition, records, received_us)

    def _limit(self, partition: int, full: bool) -> None:
        at = TopicPartition(self._topic, partition)
        if at not in self._consumer.assignment():
            return
        if full:
            self._consumer.pause(at)
        else:
            self._consumer.resume(at)


class Server:
    """`run` it as often as events may be handled side by side."""

    def __init__(self, queues: PartitionQueues, lease: Lease, handle: BatchHandler, on_error: OnError | None) -> None:
        self._queues = queues
        self._lease = lease
        self._handle = handle
        self._on_error = on_error
        self._unfinished: set[asyncio.Future[object]] = set()
        self._failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._times_s: list[float] = []
        self.processed = 0
        self.busy_s = 0.0
        """Time spent in handlers since the start."""

    async def run(self) -> None:
        """Serve until cancelled. Close the queues first: an event cut off here is neither finished nor committed."""
        while True:
            await self._lease.held()
            started = self._queues.take()
            if started is None:
                await self._queues.startable()
                continue
            await self._serve(*started)

    async def watch(self) -> None:
        """Raise what ended an event that the handler left to be done later."""
        await self._failed

    def service_times(self) -> ServiceTimes:
        """Return how long events took since the last call."""
        times_s, self._times_s = self._times_s, []
        return service_times(times_s)

    async def _serve(self, queue: PartitionQueue, taken: Taken) -> None:
        events = [_event_of(record, received_us, queue) for record, received_us in taken]
        began_s = time.perf_counter()
        try:
            later = await self._handled(events)
        finally:
            spent_s = time.perf_counter() - began_s
            queue.returned(taken)
        self.busy_s += spent_s
        self._times_s.append(spent_s / len(events))
        self.processed += len(events)
        if later is None:
            queue.finished(taken)
        else:
            self._finish_later(queue, taken, later, events)
        self._queues.look()  # the partition, or the key, may have its next event started

    async def _handled(self, events: Sequence[Event]) -> Awaitable[object] | None:
        try:
            return await self._handle(events)
        except Exception as wrong:
            await self._refuse(events, wrong)
            return None

    async def _refuse(self, events: Sequence[Event], wrong: Exception) -> None:
        """Hand the events over to `on_error`; without one, raise what was wrong with them."""
        if self._on_error is None:
            raise wrong
        for event in events:
            await self._on_error(event, wrong)

    def _finish_later(
        self, queue: PartitionQueue, taken: Taken, later: Awaitable[object], events: Sequence[Event] | None
    ) -> None:
        """Count `taken` as done once `later` is. events: whom `on_error` gets if it fails; None: it was `on_error`."""
        future = asyncio.ensure_future(later)
        self._unfinished.add(future)  # the event loop itself keeps weak references only

        def settle(done: "asyncio.Future[object]") -> None:
            self._unfinished.discard(done)
            wrong = _failure(done)
            if wrong is None:
                queue.finished(taken)
            elif self._failed.done():  # the consumer ends: what is not done is served again
                return
            elif events is None or self._on_error is None or not isinstance(wrong, Exception):
                self._failed.set_exception(wrong)
            else:
                self._finish_later(queue, taken, self._refuse(events, wrong), None)

        future.add_done_callback(settle)


def _failure(done: "asyncio.Future[object]") -> BaseException | None:
    """Return what ended it. Where its owner cancelled it, its event would else be in flight for ever."""
    return RuntimeError("what the handler returned was cancelled") if done.cancelled() else done.exception()


def _event_of(record: Any, received_us: int, queue: PartitionQueue) -> Event:
    """Return aiokafka's record as an event, with the token of its owner."""
    return Event(
        record.topic,
        record.partition,
        record.offset,
        record.key,
        record.value,
        record.headers,
        record.timestamp * 1000,
        received_us,
        queue.epoch,
        queue.generation,
    )


def service_times(times_s: Sequence[float]) -> ServiceTimes:
    """Return number, mean and maximum of how long events took (s)."""
    if not times_s:
        return ServiceTimes()
    mean_us, max_us = 1e6 * sum(times_s) / len(times_s), 1e6 * max(times_s)
    return ServiceTimes(events=len(times_s), mean_us=round(mean_us), max_us=round(max_us))
