"""Serves what the lanes hold: one event, batch or partition at a time, as the options say."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence

from contracts.progress import ServiceTimes
from services.consumer.event import BatchHandler, Event, event_of
from services.consumer.lane import Lane
from services.consumer.lanes import Lanes, Taken
from services.consumer.lease import Lease

OnError = Callable[[Event, Exception], Awaitable[None]]


class Server:
    """`run` it as often as events may be handled side by side."""

    def __init__(self, lanes: Lanes, lease: Lease, handle: BatchHandler, on_error: OnError | None) -> None:
        self._lanes = lanes
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
        """Serve until cancelled. Close the lanes first: an event cut off here is neither finished nor committed."""
        while True:
            await self._lease.held()
            started = self._lanes.take()
            if started is None:
                await self._lanes.startable()
                continue
            await self._serve(*started)

    async def watch(self) -> None:
        """Raise what ended an event that the handler left to be done later."""
        await self._failed

    def service_times(self) -> ServiceTimes:
        """Return how long events took since the last call."""
        times, self._times_s = self._times_s, []
        if not times:
            return ServiceTimes()
        mean_us, max_us = 1e6 * sum(times) / len(times), 1e6 * max(times)
        return ServiceTimes(events=len(times), mean_us=int(mean_us), max_us=int(max_us))

    async def _serve(self, lane: Lane, taken: Taken) -> None:
        events = [event_of(record, received_us, lane.epoch) for record, received_us in taken]
        began_s = time.perf_counter()
        try:
            later = await self._handled(events)
        finally:
            spent_s = time.perf_counter() - began_s
            lane.returned(taken)
        self.busy_s += spent_s
        self._times_s.append(spent_s / len(events))
        self.processed += len(events)
        if later is None:
            lane.finished(taken)
        else:
            self._finish_later(lane, taken, later, events)
        self._lanes.look()  # the partition, or the key, may have its next event started

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

    def _finish_later(self, lane: Lane, taken: Taken, later: Awaitable[object], events: Sequence[Event] | None) -> None:
        """Count `taken` as done once `later` is. events: whom `on_error` gets if it fails; None: it was `on_error`."""
        future = asyncio.ensure_future(later)
        self._unfinished.add(future)  # the event loop itself keeps weak references only

        def settle(done: "asyncio.Future[object]") -> None:
            self._unfinished.discard(done)
            wrong = _failure(done)
            if wrong is None:
                lane.finished(taken)
            elif self._failed.done():  # the consumer ends: what is not done is served again
                return
            elif events is None or self._on_error is None or not isinstance(wrong, Exception):
                self._failed.set_exception(wrong)
            else:
                self._finish_later(lane, taken, self._refuse(events, wrong), None)

        future.add_done_callback(settle)


def _failure(done: "asyncio.Future[object]") -> BaseException | None:
    """Return what ended it. Where its owner cancelled it, its event would else be in flight for ever."""
    return RuntimeError("what the handler returned was cancelled") if done.cancelled() else done.exception()
