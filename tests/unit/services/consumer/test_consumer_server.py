"""The server: completion of events, retries, failures that end the consumer, and concurrency."""

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from consumer_fakes import Record, ServerHarness, eventually, records

from contracts.unpacking import Unreadable
from services.consumer.interface import Event, Refused
from services.consumer.server import encode_dead_letter


class Unsayable(Exception):  # noqa: N818
    """An exception whose __str__ fails."""

    def __str__(self) -> str:
        raise RuntimeError


async def quick(events: Sequence[Event]) -> None:
    """Return at once."""


async def test_an_event_is_done_with_its_awaitable_and_the_next_one_does_not_wait():
    acknowledgements: list[asyncio.Future[None]] = []

    async def handle(events: Sequence[Event]) -> Any:
        acknowledgements.append(asyncio.get_running_loop().create_future())
        return acknowledgements[-1]

    harness = ServerHarness(handle)
    harness.queues.put(0, records(0, 3), 1)
    await harness.serve(lambda: harness.server.events_handled == 3)
    queue = harness.queues[0]
    assert queue.committable_offset is None

    acknowledgements[1].set_result(None)
    await asyncio.sleep(0)
    assert queue.committable_offset is None, "the first is not acknowledged"
    acknowledgements[0].set_result(None)
    await asyncio.sleep(0)
    assert (queue.committable_offset, queue.is_idle) == (2, False)
    acknowledgements[2].set_result(None)
    await asyncio.sleep(0)
    assert (queue.committable_offset, queue.is_idle) == (3, True)


async def later(outcome: Exception | None) -> None:
    """Fail, or not, after the handler has returned."""
    await asyncio.sleep(0)
    if outcome is not None:
        raise outcome


def failed_future(outcome: Exception) -> "asyncio.Future[None]":
    future = asyncio.get_running_loop().create_future()
    future.set_exception(outcome)
    return future


def raised(outcome: Exception) -> None:
    raise outcome


@pytest.mark.parametrize("fails", [raised, later, failed_future])
async def test_a_failure_without_an_error_callback_ends_the_consumer_uncommitted(fails):
    async def handle(events: Sequence[Event]) -> Any:
        return fails(OSError("the broker refused it"))

    harness = ServerHarness(handle)
    harness.queues.put(0, records(0, 1), 1)
    with pytest.raises(OSError, match="refused"):
        await harness.serve(lambda: False)
    assert harness.queues[0].committable_offset is None
    assert not harness.queues[0].is_idle, "a handover must not count it as done"


@pytest.mark.parametrize("returned", [later, failed_future])
async def test_a_failed_awaitable_reaches_the_error_callback_like_a_failed_handler(returned):
    errors: list[tuple[int, str]] = []
    gate = asyncio.Event()

    async def handle(events: Sequence[Event]) -> Any:
        bad = events[0].offset in (0, 1)
        return returned(OSError(f"refused from {events[0].offset}")) if bad else later(None)

    async def on_error(event: Event, error: Exception) -> None:
        await gate.wait()
        errors.append((event.offset, str(error)))

    harness = ServerHarness(handle, on_error=on_error, batch_size=2)
    harness.queues.put(0, records(0, 4), 1)
    serving = asyncio.ensure_future(harness.serve(lambda: harness.queues[0].committable_offset == 4))
    await eventually(lambda: harness.server.events_handled == 4)
    assert harness.queues[0].committable_offset is None, "the callback has not handled the first batch yet"
    gate.set()
    await serving
    assert errors == [(0, "refused from 0"), (1, "refused from 0")], "each event of the batch"
    assert harness.queues[0].is_idle


async def test_what_was_not_unpacked_goes_to_the_error_callback_alone_and_never_to_the_handler():
    handled: list[list[int]] = []
    errors: list[tuple[int, type[Exception]]] = []

    async def handle(events: Sequence[Event]) -> Any:
        handled.append([event.offset for event in events])

    async def on_error(event: Event, error: Exception) -> None:
        errors.append((event.offset, type(error)))

    harness = ServerHarness(handle, on_error=on_error, batch_size=9, attempts=5)
    harness.queues.put(0, [*records(0, 2), Record(2, value=Unreadable()), *records(3, 2)], 1)
    await harness.serve(lambda: harness.queues[0].committable_offset == 5)
    assert (handled, errors) == ([[0, 1], [3, 4]], [(2, Refused)])


@pytest.mark.parametrize("forgiving", [True, False])
async def test_a_cancelled_awaitable_counts_as_a_failure(forgiving):
    errors: list[str] = []

    async def handle(events: Sequence[Event]) -> Any:
        future = asyncio.get_running_loop().create_future()
        future.cancel()
        return future

    async def on_error(event: Event, error: Exception) -> None:
        errors.append(str(error))

    harness = ServerHarness(handle, on_error=on_error if forgiving else None)
    harness.queues.put(0, records(0, 1), 1)
    if forgiving:
        await harness.serve(lambda: harness.queues[0].committable_offset == 1)
        assert errors == ["the handler's awaitable was cancelled"]
    else:
        with pytest.raises(RuntimeError, match="cancelled"):
            await harness.serve(lambda: False)


@pytest.mark.parametrize("how", ["it raises", "it is late", "it waits for what was cancelled", "its awaitable fails"])
async def test_a_failed_event_is_retried_in_order_until_it_succeeds(how):
    tried: list[int] = []

    async def handle(events: Sequence[Event]) -> Any:
        tried.append(events[0].offset)
        if tried.count(0) < 3 and events[0].offset == 0:
            future = asyncio.get_running_loop().create_future()
            if how == "it raises":
                raise ValueError("not yet")
            if how == "its awaitable fails":
                return later(ValueError("not yet"))
            if how == "it waits for what was cancelled":
                future.cancel()
            await future
        return None

    harness = ServerHarness(handle, attempts=3, handler_timeout_s=0.01)
    harness.queues.put(0, records(0, 2), 1)
    await harness.serve(lambda: harness.queues[0].committable_offset == 2)
    assert sorted(tried) == [0, 0, 0, 1]
    assert how == "its awaitable fails" or tried == [0, 0, 0, 1], "its partition waits"
    assert (harness.server.attempts_retried, harness.server.events_failed) == (2, 0)


@pytest.mark.parametrize(
    ("error", "attempts"), [(ValueError("x"), 3), (Refused("no amount"), 1), (KeyError("\ud800"), 3), (Unsayable(), 3)]
)
async def test_an_event_is_handed_over_after_its_last_attempt_or_a_refusal(error, attempts):
    tried: list[int] = []
    handed_over: list[tuple[int, Exception]] = []

    async def handle(events: Sequence[Event]) -> None:
        tried.append(events[0].offset)
        raise error

    async def on_error(event: Event, error: Exception) -> None:
        handed_over.append((event.offset, error))
        msgspec.json.decode(encode_dead_letter("greeters", event, error, 5)[1])

    harness = ServerHarness(handle, on_error=on_error, attempts=3)
    harness.queues.put(0, records(0, 2), 1)
    await harness.serve(lambda: harness.queues[0].committable_offset == 2)
    assert tried == [0] * attempts + [1] * attempts
    assert handed_over == [(0, error), (1, error)]
    assert (harness.server.events_handled, harness.server.events_failed) == (2, 2)


async def test_a_handler_that_never_returns_is_cancelled_with_a_reason():
    handed_over: list[str] = []

    async def on_error(event: Event, error: Exception) -> None:
        handed_over.append(str(error))

    async def never(events: Sequence[Event]) -> Any:
        awaited = asyncio.get_running_loop().create_future()
        return awaited if events[0].offset else await awaited

    harness = ServerHarness(never, on_error=on_error, handler_timeout_s=0.01)
    harness.queues.put(0, records(0, 2), 1)
    await harness.serve(lambda: harness.queues[0].committable_offset == 2)
    assert handed_over == [
        "the handler was not done within 0.01 s (handler_timeout_s)",
        "the handler's awaitable was not done within 0.01 s (handler_timeout_s)",
    ]


async def test_a_stop_cancels_a_handler_without_failing_its_event():
    async def handle(events: Sequence[Event]) -> None:
        await asyncio.get_running_loop().create_future()

    harness = ServerHarness(handle)
    harness.queues.put(0, records(0, 1), 1)
    serving = asyncio.ensure_future(harness.server.run())
    await eventually(lambda: not harness.queues[0].is_idle)
    serving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await serving
    assert (harness.server.attempts_retried, harness.server.events_failed) == (0, 0)
    assert harness.queues[0].committable_offset is None


async def test_a_failure_after_the_loss_of_its_partition_is_ignored():
    harness: ServerHarness

    async def handle(events: Sequence[Event]) -> None:
        harness.queues.drop([0])
        raise ValueError("late")

    async def on_error(event: Event, error: Exception) -> None:
        pytest.fail("its next owner handles it")

    harness = ServerHarness(handle, on_error=on_error)
    harness.queues.put(0, records(0, 1), 1)
    await harness.serve(lambda: 0 not in harness.queues.owned_partitions)


@pytest.mark.parametrize(("concurrency", "per_partition", "most"), [(1, 3, 1), (3, 1, 1), (3, 2, 2), (2, 3, 2)])
async def test_events_overlap_as_far_as_both_limits_allow(concurrency, per_partition, most):
    in_flight: set[int] = set()
    peak = 0

    async def handle(events: Sequence[Event]) -> None:
        nonlocal peak
        in_flight.add(events[0].offset)
        peak = max(peak, len(in_flight))
        await asyncio.sleep(0.001)
        in_flight.discard(events[0].offset)

    harness = ServerHarness(handle, per_partition=per_partition)
    harness.queues.put(0, records(0, 8), 1)
    await harness.serve(lambda: harness.queues[0].committable_offset == 8, concurrency=concurrency)
    assert peak == most


async def test_no_event_starts_while_the_lease_is_expired():
    harness = ServerHarness(quick)
    harness.now_s += 6.1
    harness.queues.put(0, records(0, 1), 1)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await harness.server.run()
    assert harness.server.events_handled == 0
    asyncio.get_running_loop().call_soon(harness.lease.renew, harness.now_s)
    await harness.serve(lambda: harness.server.events_handled == 1)
