"""Events at work in a replica: served from the partition queues as the options say, tried again, written off."""

import asyncio
import logging
from bisect import bisect_left
from collections.abc import Awaitable, Sequence
from typing import Any, Final

from contracts.clock import now_us, steady_s
from contracts.progress import IN_TIME, LATENCY_BOUNDS, ServiceTimes
from contracts.topics import DEFAULT_LARGEST
from services.common import traces
from services.common.records import KEY_LIMIT, LETTER_LIMIT, Refusal, dead_letter, encode, letter_key, order_id_in
from services.consumer.interface import BatchHandler, Event, OnError, Options, Refused
from services.consumer.lease import Lease
from services.consumer.metrics import Latencies
from services.consumer.partition_queue import PartitionQueue, PartitionQueues, Taken

log = logging.getLogger(__name__)


class Server:
    """`run` it as often as events may be handled side by side.

    group: as traces name it.
    latencies: told how long after its timestamp each event was handled; None: the handler tells them itself.
    """

    def __init__(
        self,
        queues: PartitionQueues,
        lease: Lease,
        handle: BatchHandler,
        on_error: OnError | None,
        options: Options,
        *,
        latencies: Latencies | None = None,
        group: str = "",
    ) -> None:
        self._group = group
        self._queues = queues
        self._lease = lease
        self._handle = handle
        self._on_error = on_error
        self._options = options
        self._latencies = latencies
        self._bounds_us = [round(bound * options.latency_target_s * 1e6) for bound in LATENCY_BOUNDS]
        self._timeout_s = options.handler_timeout_s or None
        self._unfinished: set[asyncio.Future[object]] = set()
        self._failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._times_s: list[float] = []
        self._began_s: dict[Taken, float] = {}
        self.processed = 0
        self.latencies = [0] * (len(LATENCY_BOUNDS) + 1)
        """Events by how long after their fetch they were done: by one clock, so that no other can make them late."""
        self.retried = 0
        """Attempts that failed and are, or were, followed by another."""
        self.failed = 0
        """Events that have failed for good."""
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

    @property
    def late(self) -> int:
        """Events done more than W after they had been fetched."""
        return sum(self.latencies[IN_TIME:])

    def longest_s(self) -> float:
        """Return for how long the handler has been at work that began first; 0 where none is."""
        return steady_s() - min(self._began_s.values()) if self._began_s else 0.0

    async def _serve(self, queue: PartitionQueue, taken: Taken) -> None:
        events = [_event_of(polled.record, polled.received_us, queue) for polled in taken.records]
        self._began_s[taken] = steady_s()
        wrong: Exception | None = None
        later: Awaitable[object] | None = None
        try:
            async with asyncio.timeout(self._timeout_s) as limit:
                with traces.work(self._group, events, taken.traced) as taken.traced:
                    later = await self._handle(events)
        except TimeoutError as late:
            wrong = self._overdue("the handler") if limit.expired() else late
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():  # the replica stops
                raise
            wrong = RuntimeError("the handler was cancelled by something that it waited for")
        except Exception as raised:
            wrong = raised
        finally:
            spent_s = steady_s() - self._began_s.pop(taken)
            self._queues.returned(queue, taken)
        self.busy_s += spent_s
        self._times_s.append(spent_s / len(events))
        if wrong is not None:
            await self._failed_attempt(queue, taken, events, wrong)
            return
        self.processed += len(events)
        done_us = now_us()
        for event in events:
            self.latencies[bisect_left(self._bounds_us, done_us - event.received_us)] += 1
        if self._latencies is not None:
            for event in events:
                self._latencies.observe((done_us - event.timestamp_us) / 1e6)
        if later is None:
            queue.finished(taken)
        else:
            self._finish_later(queue, taken, later, events)

    async def _failed_attempt(
        self, queue: PartitionQueue, taken: Taken, events: Sequence[Event], wrong: Exception
    ) -> None:
        """Have it tried again, or, after the last attempt, hand it over to `on_error`."""
        if queue.is_dropped or self._try_again(queue, taken, wrong):  # dropped: others judge it
            return
        with traces.under(taken.traced):
            await self._refuse(events, wrong)
        self.processed += len(events)
        queue.finished(taken)

    def _try_again(self, queue: PartitionQueue, taken: Taken, wrong: Exception) -> bool:
        taken.failures += 1
        if isinstance(wrong, Refused) or taken.failures >= self._options.attempts:
            return False
        self.retried += 1
        first = taken.records[0].record
        log.info(
            "partition %d, offset %d: attempt %d of %d failed: %s",
            first.partition, first.offset, taken.failures, self._options.attempts, told(wrong),
        )  # fmt: skip
        self._queues.retry(queue, taken, self._options.backoff_s(taken.failures))
        return True

    async def _refuse(self, events: Sequence[Event], wrong: Exception) -> None:
        """Hand the events over to `on_error`; without one, raise what was wrong with them."""
        if self._on_error is None:
            raise wrong
        for event in events:
            await self._on_error(event, wrong)
            self.failed += 1

    def _finish_later(
        self, queue: PartitionQueue, taken: Taken, later: Awaitable[object], events: Sequence[Event] | None
    ) -> None:
        """Count `taken` as done once `later` is. events: what is tried again if it fails; None: it was `on_error`."""
        future = asyncio.ensure_future(later)
        self._unfinished.add(future)  # the event loop itself keeps weak references only
        limit = self._limit(future) if events is not None else None

        def settle(done: "asyncio.Future[object]") -> None:
            self._unfinished.discard(done)
            if limit is not None:
                limit.cancel()
            wrong = _failure(done)
            if wrong is None:
                queue.finished(taken)
            elif self._failed.done():  # the consumer ends: what is not done is served again
                return
            elif events is None or not isinstance(wrong, Exception):
                self._failed.set_exception(wrong)
            elif not self._try_again(queue, taken, wrong):
                self._finish_later(queue, taken, self._refuse(events, wrong), None)

        future.add_done_callback(settle)

    def _limit(self, future: "asyncio.Future[object]") -> asyncio.TimerHandle | None:
        """Cancel what a handler returned when its time is over."""
        if self._timeout_s is None or future.done():
            return None
        overdue = str(self._overdue("what the handler returned"))
        return asyncio.get_running_loop().call_later(self._timeout_s, future.cancel, overdue)

    def _overdue(self, what: str) -> TimeoutError:
        return TimeoutError(f"{what} was not done within {self._timeout_s:g} s (handler_timeout_s)")


def _failure(done: "asyncio.Future[object]") -> BaseException | None:
    """Return what ended it. Where its owner cancelled it, its event would else be in flight for ever."""
    if not done.cancelled():
        return done.exception()
    try:
        done.result()
    except asyncio.CancelledError as cancelled:
        return RuntimeError(*(cancelled.args or ("what the handler returned was cancelled",)))
    return None


def _event_of(record: Any, received_us: int, queue: PartitionQueue) -> Event:
    """Return aiokafka's record as an event, with the token of its owner."""
    where, stamp_us = (record.topic, record.partition, record.offset), record.timestamp * 1000
    owner = (queue.epoch, queue.generation)
    return Event(*where, record.key, record.value, record.headers, stamp_us, received_us, *owner)


def service_times(times_s: Sequence[float]) -> ServiceTimes:
    """Return number, mean and maximum of how long events took (s)."""
    if not times_s:
        return ServiceTimes()
    mean_us, max_us = 1e6 * sum(times_s) / len(times_s), 1e6 * max(times_s)
    return ServiceTimes(events=len(times_s), mean_us=round(mean_us), max_us=round(max_us))


TOLD_LIMIT: Final = 1000  # characters of an exception's text that are told


def encode_dead_letter(
    stage: str, event: Event, wrong: Exception, at_us: int, room: int = DEFAULT_LARGEST
) -> tuple[bytes | None, bytes]:
    """Return key and value of an event's dead letter: its reasons are those of a Refused, else what was raised.

    room: bytes that both may have together. Where little, the event's value is left out.
    """
    reasons = wrong.reasons if isinstance(wrong, Refused) and wrong.reasons else (told(wrong),)
    refusal = Refusal(reasons, order_id_in(event.value))
    bare = room < LETTER_LIMIT + KEY_LIMIT
    return letter_key(event.key), encode(dead_letter(stage, event, refusal, at_us, bare=bare))


def told(wrong: Exception) -> str:
    """Return type and text of an exception, cut, whatever it is made of."""
    try:
        return f"{type(wrong).__name__}: {wrong}"[:TOLD_LIMIT].encode(errors="replace").decode()
    except Exception:  # an exception whose own text cannot be had
        return type(wrong).__name__
