"""The outbox stores outputs under their events; a failed attempt or a lost partition leaves none."""

import asyncio

import pytest
from aiokafka.errors import MessageSizeTooLargeError

from services.consumer import Event
from services.consumer import outbox as module
from services.consumer.outbox import MAX_RECORD_BYTES, Outbox, Record

OWNED = (3, 7)


def event(offset: int, generation: int = 7) -> Event:
    return Event("t", 3, offset, b"k", b"v", (), 0, received_us=1, epoch=1, generation=generation)


def records(*offsets: int) -> list[Record]:
    return [Record("out", b"k", str(offset).encode()) for offset in offsets]


class OutboxHarness:
    """An outbox, and a handler that writes each event's offset."""

    def __init__(self) -> None:
        self.outbox = Outbox(asyncio.Event())

    async def write(self, event_: Event) -> "asyncio.Future[None]":
        return await self.outbox.send("out", b"k", str(event_.offset).encode())

    async def handle(self, *events: Event, then=None) -> object:
        async def handler(batch):
            for event_ in batch:
                await self.write(event_)
            return await then(batch) if then else None

        return await self.outbox.wrap_handler(handler)(events)


async def test_outputs_before_an_offset_are_in_the_order_of_their_events():
    d = OutboxHarness()
    for offset in (12, 10, 11):
        assert await d.handle(event(offset)) is None
    assert d.outbox.outputs_before(OWNED, 12) == records(10, 11)
    d.outbox.discard_before({OWNED: 12})
    assert d.outbox.outputs_before(OWNED, 20) == records(12)


async def test_a_failed_attempt_stores_no_output():
    d = OutboxHarness()

    async def fail(_):
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await d.handle(event(4), then=fail)
    assert d.outbox.outputs_before(OWNED, 9) == []
    await d.handle(event(4))
    await d.handle(event(4))
    assert d.outbox.outputs_before(OWNED, 9) == records(4)


async def test_outputs_of_an_awaitable_are_stored_once_it_is_done():
    d = OutboxHarness()
    go_on = asyncio.Event()

    async def later(batch):
        async def rest():
            await go_on.wait()
            await d.write(event(99))

        return rest()

    done = await d.handle(event(4), then=later)
    assert d.outbox.outputs_before(OWNED, 9) == []
    go_on.set()
    await done
    assert d.outbox.outputs_before(OWNED, 9) == records(4, 99)


async def test_a_dead_letter_is_stored_under_its_event():
    d = OutboxHarness()
    await d.outbox.wrap_on_error(lambda event_, error: d.write(event_))(event(4), ValueError())
    assert d.outbox.outputs_before(OWNED, 5) == records(4)


async def test_outputs_of_a_lost_partition_are_discarded_even_if_it_is_taken_again():
    d = OutboxHarness()
    await d.handle(event(4, generation=6))
    await d.handle(event(5))
    d.outbox.retain([OWNED])
    assert d.outbox.outputs_before((3, 6), 9) == []
    assert d.outbox.outputs_before(OWNED, 9) == records(5)


async def test_an_output_outside_a_handler_or_above_the_size_limit_is_refused():
    d = OutboxHarness()
    with pytest.raises(RuntimeError, match="only handlers"):
        await d.write(event(1))

    async def big(_):
        await d.outbox.send("out", None, b"x" * (MAX_RECORD_BYTES + 1))

    with pytest.raises(MessageSizeTooLargeError, match="1000001 bytes"):
        await d.handle(event(1), then=big)


async def test_a_full_outbox_requests_a_commit_and_delays_handlers(monkeypatch):
    monkeypatch.setattr(module, "EARLY_COMMIT_BYTES", 4)
    monkeypatch.setattr(module, "MAX_STORED_BYTES", 6)
    d = OutboxHarness()
    await d.handle(event(1), event(2))  # two bytes each
    assert d.outbox._early_commit.is_set()
    await d.handle(event(3))
    waiting = asyncio.ensure_future(d.handle(event(4)))
    await asyncio.sleep(0)
    assert not waiting.done()
    d.outbox.discard_before({OWNED: 4})
    await waiting
    assert d.outbox.outputs_before(OWNED, 9) == records(4)
