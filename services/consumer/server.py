"""Serves events from the partition queues: calls the handler, retries failed attempts, hands over failed events."""

import asyncio
import logging
from bisect import bisect_left
from collections.abc import Awaitable, Sequence
from typing import Any, Final

from contracts.clock import monotonic_s, now_us
from contracts.progress import LATENCY_BOUNDS
from contracts.topics import DEFAULT_MAX_MESSAGE_BYTES
from services.common import traces
from services.common.records import KEY_LIMIT, LETTER_LIMIT, Refusal, dead_letter, encode, letter_key, order_id_in
from services.consumer.interface import BatchHandler, Event, OnError, Options, Refused
from services.consumer.lease import Lease
from services.consumer.metrics import Buckets
from services.consumer.partition_queue import Batch, PartitionQueue, PartitionQueues

log = logging.getLogger(__name__)


class Server:
    """Serves events. Each task of `run` handles one event, or batch, at a time.

    group: the group's name in traces.
    latencies: observes the time from each event's timestamp until it was handled. None: the handler reports it.
    """

    def __init__(
        self,
        queues: PartitionQueues,
        lease: Lease,
        handle: BatchHandler,
        on_error: OnError | None,
        options: Options,
        *,
        latencies: Buckets | None = None,
        group: str = "",
    ) -> None:
        self._group, self._queues, self._lease, self._handle = group, queues, lease, handle
        self._on_error, self._options, self._latencies = on_error, options, latencies
        self._bounds_us = [round(bound * options.latency_target_s * 1e6) for bound in LATENCY_BOUNDS]
        self._timeout_s = options.handler_timeout_s
        self._unfinished: set[asyncio.Future[object]] = set()
        self._failure: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._calls: dict[Batch, tuple[float, asyncio.Future[Any]]] = {}
        """Batch at work → when its handler, or awaitable, began (s), and the future to cancel if that is late."""
        self._timer: asyncio.TimerHandle | None = None
        self.events_handled = 0
        """Events whose handler returned, or that failed for good. An event counts again if its awaitable failed."""
        self.latency_counts = [0] * (len(LATENCY_BOUNDS) + 1)
        """Number of handled events by time since their poll (bounds: LATENCY_BOUNDS × W), by this process's clock."""
        self.attempts_retried = 0
        """Failed attempts with a retry."""
        self.events_failed = 0
        """Events that have failed for good."""
        self.busy_s = 0.0
        """Seconds spent in handlers since the start."""

    async def run(self) -> None:
        """Serve until cancelled. Close the queues first, because a cancelled event is not committed."""
        task = asyncio.current_task()
        assert task is not None
        work: tuple[PartitionQueue, Batch] | None = None
        while True:
            if self._lease.is_expired:
                await self._lease.wait_until_valid()
            work = self._queues.take(work and work[0])
            await (self._serve(*work, task) if work else self._queues.startable.wait())

    async def watch(self) -> None:
        """Raise the error of an awaitable that a handler returned, if that error ends the consumer."""
        await self._failure

    def longest_handler_s(self) -> float:
        """Return the age of the oldest handler call in progress (s); 0 without one."""
        return monotonic_s() - min(began_s for began_s, _ in self._calls.values()) if self._calls else 0.0

    async def _serve(self, queue: PartitionQueue, batch: Batch, task: "asyncio.Task[None]") -> None:
        events = batch.events
        began_s = self._limit_time(batch, task)
        error: Exception | None = None
        completion: Awaitable[object] | None = None
        try:
            if traces.on is None and not batch.is_unreadable:
                completion = await self._handle(events)
            else:
                completion = await self._handle_traced(batch)
        except asyncio.CancelledError:
            if task.cancelling() > batch.is_late:  # the replica stops
                raise
            why = RuntimeError("the handler was cancelled by an awaitable that it waited for")
            error = self._timeout_error("the handler") if batch.is_late else why
        except Exception as raised:
            error = raised
        finally:
            self.busy_s += monotonic_s() - began_s
            del self._calls[batch]
            if batch.is_late:
                batch.is_late = False
                task.uncancel()
        if error is not None:
            self._queues.handler_returned(queue, batch)
            await self._handle_failure(queue, batch, events, error)
        else:
            queue.handler_returned(batch)
            self._count(events)
            if completion is None:
                queue.finish(batch)
            else:
                self._finish_later(queue, batch, completion, events)

    async def _handle_traced(self, batch: Batch) -> Awaitable[object] | None:
        with traces.work(self._group, batch.events, batch.span_context) as batch.span_context:
            if batch.is_unreadable:
                raise Refused(batch.events[0].value.reason)  # type: ignore[union-attr]
            return await self._handle(batch.events)

    def _count(self, events: Sequence[Event]) -> None:
        done_us, polled_us = now_us(), events[0].received_us
        self.events_handled += len(events)
        polls = [polled_us] if polled_us == events[-1].received_us else [event.received_us for event in events]
        for polled_us in polls:
            self.latency_counts[bisect_left(self._bounds_us, done_us - polled_us)] += len(events) // len(polls)
        if self._latencies is not None and len(events) == 1:
            self._latencies.observe((done_us - events[0].timestamp_us) / 1e6)
        elif self._latencies is not None:
            self._latencies.observe_since([event.timestamp_us for event in events], done_us)

    def _limit_time(self, batch: Batch, future: "asyncio.Future[Any]") -> float:
        """Cancel `future`, which works on the batch from now on, after the time-out. Return the time."""
        began_s, _ = self._calls[batch] = monotonic_s(), future
        if self._timer is None and self._timeout_s:
            self._timer = asyncio.get_running_loop().call_later(self._timeout_s, self._cancel_late)
        return began_s

    def _cancel_late(self) -> None:
        oldest_s = now_s = monotonic_s()
        for batch, (began_s, future) in self._calls.items():
            if began_s + self._timeout_s > now_s:
                oldest_s = min(oldest_s, began_s)
            elif not batch.is_late:
                batch.is_late = future.cancel()
        left_s = oldest_s + self._timeout_s - now_s  # one timer at a time serves all
        self._timer = asyncio.get_running_loop().call_later(left_s, self._cancel_late) if self._calls else None

    async def _handle_failure(
        self, queue: PartitionQueue, batch: Batch, events: Sequence[Event], error: Exception
    ) -> None:
        if queue.is_dropped or self._retry(queue, batch, error):  # dropped: the next owner handles its events
            return
        with traces.under(batch.span_context):
            await self._hand_over(events, error)
        self.events_handled += len(events)
        queue.finish(batch)

    def _retry(self, queue: PartitionQueue, batch: Batch, error: Exception) -> bool:
        batch.failures += 1
        if isinstance(error, Refused) or batch.failures >= self._options.attempts:
            return False
        self.attempts_retried += 1
        first = batch.events[0]
        log.info(
            "Partition %d, offset %d: attempt %d of %d failed: %s",
            first.partition, first.offset, batch.failures, self._options.attempts, describe_error(error),
        )  # fmt: skip
        self._queues.retry(queue, batch, self._options.backoff_s(batch.failures))
        return True

    async def _hand_over(self, events: Sequence[Event], error: Exception) -> None:
        if self._on_error is None:
            raise error
        for event in events:
            await self._on_error(event, error)
            self.events_failed += 1

    def _finish_later(
        self, queue: PartitionQueue, batch: Batch, completion: Awaitable[object], events: Sequence[Event] | None
    ) -> None:
        """Finish the batch once `completion` is done. events: retried if it fails; None: `completion` is `on_error`."""
        future = asyncio.ensure_future(completion)
        self._unfinished.add(future)  # the event loop keeps only weak references
        if events is not None:
            self._limit_time(batch, future)

        def on_done(done: "asyncio.Future[object]") -> None:
            self._unfinished.discard(done)
            self._calls.pop(batch, None)
            error = RuntimeError("the handler's awaitable was cancelled") if done.cancelled() else done.exception()
            if batch.is_late:
                batch.is_late, error = False, self._timeout_error("the handler's awaitable")
            if error is None:
                queue.finish(batch)
            elif self._failure.done():  # the consumer ends, so the event is served again
                return
            elif events is None or not isinstance(error, Exception):
                self._failure.set_exception(error)
            elif not self._retry(queue, batch, error):
                self._finish_later(queue, batch, self._hand_over(events, error), None)

        future.add_done_callback(on_done)

    def _timeout_error(self, what: str) -> TimeoutError:
        return TimeoutError(f"{what} was not done within {self._timeout_s:g} s (handler_timeout_s)")


MAX_ERROR_CHARS: Final = 1000


def encode_dead_letter(
    stage: str, event: Event, error: Exception, at_us: int, max_bytes: int = DEFAULT_MAX_MESSAGE_BYTES
) -> tuple[bytes | None, bytes]:
    """Return key and value of an event's dead letter. Its reasons: those of a Refused `error`, else the error's text.

    max_bytes: limit for key and value together. If it is low, the event's value is left out.
    """
    reasons = error.reasons if isinstance(error, Refused) and error.reasons else (describe_error(error),)
    refusal = Refusal(reasons, order_id_in(event.value))
    bare = max_bytes < LETTER_LIMIT + KEY_LIMIT
    return letter_key(event.key), encode(dead_letter(stage, event, refusal, at_us, bare=bare))


def describe_error(error: Exception) -> str:
    """Return type and text of an exception, at most MAX_ERROR_CHARS characters. Never raises."""
    try:
        return f"{type(error).__name__}: {error}"[:MAX_ERROR_CHARS].encode(errors="replace").decode()
    except Exception:  # its own __str__ has failed
        return type(error).__name__
