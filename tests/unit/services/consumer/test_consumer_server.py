"""Handlers at work: what counts as done, what ends the consumer, how many run side by side."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from consumer_fakes import Kitchen, Record, eventually, records

from contracts.progress import ServiceTimes
from services.consumer.interface import Event


async def quick(events: Sequence[Event]) -> None:
    """Done at once."""


async def test_an_event_carries_what_the_record_said_and_the_epoch_it_was_taken_under():
    seen: list[Event] = []

    async def handle(events: Sequence[Event]) -> None:
        seen.extend(events)

    kitchen = Kitchen(handle)
    kitchen.queues.put(0, [Record(4, timestamp=12, key=b"k", headers=(("h", b"v"),))], 99)
    await kitchen.serve(lambda: bool(seen))
    (event,) = seen
    assert (event.partition, event.offset, event.key, event.value) == (0, 4, b"k", b"value")
    assert (event.timestamp_us, event.received_us, event.epoch) == (12_000, 99, 7)
    assert event.headers == (("h", b"v"),)


async def test_what_the_handler_returned_for_later_is_done_when_that_is_and_the_next_event_does_not_wait():
    acknowledgements: list[asyncio.Future[None]] = []

    async def handle(events: Sequence[Event]) -> Any:
        acknowledgements.append(asyncio.get_running_loop().create_future())
        return acknowledgements[-1]

    kitchen = Kitchen(handle)
    kitchen.queues.put(0, records(0, 3), 1)
    await kitchen.serve(lambda: kitchen.server.processed == 3)
    queue = kitchen.queues[0]
    assert queue.committable is None

    acknowledgements[1].set_result(None)
    await asyncio.sleep(0)
    assert queue.committable is None, "the first is not acknowledged"
    acknowledgements[0].set_result(None)
    await asyncio.sleep(0)
    assert (queue.committable, queue.is_idle) == (2, False)
    acknowledgements[2].set_result(None)
    await asyncio.sleep(0)
    assert (queue.committable, queue.is_idle) == (3, True)


async def later(outcome: Exception | None) -> None:
    """Fails, or not, when the handler is long back."""
    await asyncio.sleep(0)
    if outcome is not None:
        raise outcome


def failed_future(outcome: Exception) -> "asyncio.Future[None]":
    future = asyncio.get_running_loop().create_future()
    future.set_exception(outcome)
    return future


@pytest.mark.parametrize("returned", [later, failed_future])
async def test_what_was_returned_for_later_and_fails_ends_the_consumer_and_its_event_is_never_committed(returned):
    async def handle(events: Sequence[Event]) -> Any:
        return returned(OSError("the broker refused it"))

    kitchen = Kitchen(handle)
    kitchen.queues.put(0, records(0, 1), 1)
    with pytest.raises(OSError, match="refused"):
        await kitchen.serve(lambda: False)
    assert kitchen.queues[0].committable is None


@pytest.mark.parametrize("returned", [later, failed_future])
async def test_with_an_error_callback_what_was_returned_for_later_may_fail_like_the_handler_itself(returned):
    wrong: list[tuple[int, str]] = []
    gate = asyncio.Event()

    async def handle(events: Sequence[Event]) -> Any:
        bad = events[0].offset in (0, 1)
        return returned(OSError(f"refused from {events[0].offset}")) if bad else later(None)

    async def on_error(event: Event, error: Exception) -> None:
        await gate.wait()
        wrong.append((event.offset, str(error)))

    kitchen = Kitchen(handle, on_error=on_error, batch_size=2)
    kitchen.queues.put(0, records(0, 4), 1)
    serving = asyncio.ensure_future(kitchen.serve(lambda: kitchen.queues[0].committable == 4))
    await eventually(lambda: kitchen.server.processed == 4)
    assert kitchen.queues[0].committable is None, "nobody has taken care of the first batch yet"
    gate.set()
    await serving
    assert wrong == [(0, "refused from 0"), (1, "refused from 0")], "each event of the batch"
    assert kitchen.queues[0].is_idle


@pytest.mark.parametrize("forgiving", [True, False])
async def test_what_was_returned_for_later_and_is_cancelled_has_failed_and_is_not_in_flight_for_ever(forgiving):
    wrong: list[str] = []

    async def handle(events: Sequence[Event]) -> Any:
        future = asyncio.get_running_loop().create_future()
        future.cancel()
        return future

    async def on_error(event: Event, error: Exception) -> None:
        wrong.append(str(error))

    kitchen = Kitchen(handle, on_error=on_error if forgiving else None)
    kitchen.queues.put(0, records(0, 1), 1)
    if forgiving:
        await kitchen.serve(lambda: kitchen.queues[0].committable == 1)
        assert wrong == ["what the handler returned was cancelled"]
    else:
        with pytest.raises(RuntimeError, match="cancelled"):
            await kitchen.serve(lambda: False)


async def test_without_an_error_callback_what_a_handler_raises_ends_the_consumer_and_the_event_is_served_again():
    async def handle(events: Sequence[Event]) -> None:
        raise ValueError("bad event")

    kitchen = Kitchen(handle)
    kitchen.queues.put(0, records(0, 1), 1)
    with pytest.raises(ValueError, match="bad event"):
        await kitchen.serve(lambda: False)
    assert kitchen.queues[0].committable is None
    assert not kitchen.queues[0].is_idle, "a handover must not take it for done"


async def test_with_an_error_callback_the_event_counts_as_done_and_the_next_follows():
    wrong: list[tuple[int, str]] = []

    async def handle(events: Sequence[Event]) -> None:
        if events[0].offset in (0, 1):
            raise ValueError(f"bad event {events[0].offset}")

    async def on_error(event: Event, error: Exception) -> None:
        wrong.append((event.offset, str(error)))

    kitchen = Kitchen(handle, on_error=on_error, batch_size=2)
    kitchen.queues.put(0, records(0, 3), 1)
    await kitchen.serve(lambda: kitchen.queues[0].committable == 3)
    assert wrong == [(0, "bad event 0"), (1, "bad event 0")], "each event of the batch"


@pytest.mark.parametrize(("cooks", "per_partition", "most"), [(1, 3, 1), (3, 1, 1), (3, 2, 2), (2, 3, 2)])
async def test_events_overlap_as_far_as_both_limits_allow(cooks, per_partition, most):
    at_work: set[int] = set()
    peak = 0

    async def handle(events: Sequence[Event]) -> None:
        nonlocal peak
        at_work.add(events[0].offset)
        peak = max(peak, len(at_work))
        await asyncio.sleep(0.001)
        at_work.discard(events[0].offset)

    kitchen = Kitchen(handle, per_partition=per_partition)
    kitchen.queues.put(0, records(0, 8), 1)
    await kitchen.serve(lambda: kitchen.queues[0].committable == 8, cooks=cooks)
    assert peak == most


async def test_while_the_lease_is_out_nothing_is_started_until_the_group_confirms_the_membership():
    kitchen = Kitchen(quick)
    kitchen.now_s += 6.1
    kitchen.queues.put(0, records(0, 1), 1)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await kitchen.server.run()
    assert kitchen.server.processed == 0
    asyncio.get_running_loop().call_soon(kitchen.lease.renew, kitchen.now_s)
    await kitchen.serve(lambda: kitchen.server.processed == 1)


async def test_service_times_are_those_since_the_last_look():
    async def handle(events: Sequence[Event]) -> None:
        await asyncio.sleep(0.002 if events[0].offset == 0 else 0)

    kitchen = Kitchen(handle)
    assert kitchen.server.service_times() == ServiceTimes()
    kitchen.queues.put(0, records(0, 3), 1)
    await kitchen.serve(lambda: kitchen.server.processed == 3)

    times = kitchen.server.service_times()
    assert times.events == 3
    assert 2000 <= times.max_us <= 1e6 * kitchen.server.busy_s + 1
    assert times.mean_us == pytest.approx(1e6 * kitchen.server.busy_s / 3, abs=2)
    assert kitchen.server.service_times() == ServiceTimes()
