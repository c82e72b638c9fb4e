"""A stage takes effect once: told as stories with a broker that answers when the test says so."""

import asyncio
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from contracts.events import DeadLetter
from services.common.records import Decide, Effect, Incoming, Refusal
from services.common.stage import Stage


class SlowBroker:
    """Takes records and acknowledges them one by one, when told."""

    def __init__(self) -> None:
        self.taken: list[Effect] = []
        self.answers: list[asyncio.Future[Any]] = []

    async def send(self, effect: Effect) -> "asyncio.Future[Any]":
        self.taken.append(effect)
        self.answers.append(asyncio.get_running_loop().create_future())
        return self.answers[-1]

    async def acknowledge(self, *numbers: int) -> None:
        for number in numbers:
            self.answers[number].set_result(None)
        await turns()


async def turns() -> None:
    """Let callbacks, and what they call, run. No time passes."""
    for _ in range(3):
        await asyncio.sleep(0)


class Bench:
    """A stage, its broker, and the offsets it has acknowledged."""

    def __init__(self) -> None:
        self.broker = SlowBroker()
        self.stage = Stage("shipment", "dead.letters", self.broker.send)
        self.acknowledged: list[int] = []

    async def take(self, offset: int, value: bytes, decide: Decide | None = None) -> None:
        record = Incoming("payments.settled", 0, offset, 0, b"key", value, {})
        await self.stage.take(record, decide or ship, lambda: self.acknowledged.append(offset))


def ship(record: Incoming) -> Iterator[Effect | Refusal]:
    assert record.value is not None
    if record.value == b"bad":
        yield Refusal(("it is bad", "card 4111111111111111 too"), order_id="o-1")
    elif record.value != b"nothing":
        yield Effect(f"id of {record.value.decode()}", "shipments.scheduled", record.key, record.value)


async def test_the_next_record_is_decided_before_the_first_is_acknowledged() -> None:
    bench = Bench()
    await bench.take(0, b"a")
    await bench.take(1, b"b")
    assert [effect.value for effect in bench.broker.taken] == [b"a", b"b"]
    assert bench.acknowledged == []
    await bench.broker.acknowledge(1)
    assert bench.acknowledged == []
    await bench.broker.acknowledge(0)
    assert bench.acknowledged == [0, 1]


async def test_a_repeat_of_a_record_on_its_way_is_acknowledged_only_with_it() -> None:
    bench = Bench()
    await bench.take(0, b"a")
    bench.stage.revoked()  # the partition is read again from the committed offset
    await bench.take(0, b"a")
    assert len(bench.broker.taken) == 1
    assert bench.acknowledged == []
    await bench.broker.acknowledge(0)
    assert bench.acknowledged == [0]


async def test_what_was_written_before_the_start_is_not_written_again() -> None:
    bench = Bench()
    bench.stage.assigned(["id of a"])
    await bench.take(7, b"a")
    assert bench.broker.taken == []
    assert bench.acknowledged == [7]


async def test_a_refused_record_becomes_one_dead_letter_with_all_reasons() -> None:
    bench = Bench()
    await bench.take(5, b"bad")
    await bench.take(5, b"bad")
    (effect,) = bench.broker.taken
    letter = msgspec.json.decode(effect.value or b"", type=DeadLetter)
    assert effect.topic == "dead.letters"
    assert effect.key == b"key"
    assert letter.letter_id == "payments.settled/0/5"
    assert letter.reasons == ("it is bad", "card ************1111 too")
    assert letter.order_id == "o-1"


async def test_where_the_broker_takes_small_records_only_a_letter_is_bare() -> None:
    bench = Bench()
    bench.stage.max_record_bytes = 4096
    await bench.take(5, b"bad")
    (effect,) = bench.broker.taken
    letter = msgspec.json.decode(effect.value or b"", type=DeadLetter)
    assert (letter.payload, letter.payload_bytes) == ("", 3)
    assert letter.reasons == ("it is bad (cut: the topic takes small records only)",)


async def test_a_record_that_no_rule_foresaw_does_not_stop_those_behind_it() -> None:
    def stumble(record: Incoming) -> Iterator[Effect]:
        raise OverflowError("date value out of range")

    bench = Bench()
    await bench.take(0, b"a", stumble)
    await bench.take(1, b"b")
    letter = msgspec.json.decode(bench.broker.taken[0].value or b"", type=DeadLetter)
    assert letter.reasons == ("shipment cannot process it: OverflowError: date value out of range",)
    await bench.broker.acknowledge(0, 1)
    assert bench.acknowledged == [0, 1]


@pytest.mark.parametrize("failure", [OSError("gone"), None], ids=["refused", "cancelled"])
async def test_a_record_that_cannot_be_written_ends_the_stage_unacknowledged(
    failure: Exception | None,
) -> None:
    bench = Bench()
    await bench.take(0, b"a")
    answer = bench.broker.answers[0]
    if failure is None:
        answer.cancel()
    else:
        answer.set_exception(failure)
    await turns()
    assert "shipments.scheduled" in str(bench.stage.failed.result())
    assert bench.acknowledged == []


async def test_draining_waits_for_what_is_on_its_way_and_gives_up_at_its_deadline() -> None:
    bench = Bench()
    assert await bench.stage.drain(0.0)
    await bench.take(0, b"a")
    assert not await bench.stage.drain(0.0)
    draining = asyncio.create_task(bench.stage.drain(5.0))
    await asyncio.sleep(0)
    await bench.broker.acknowledge(0)
    assert await draining
