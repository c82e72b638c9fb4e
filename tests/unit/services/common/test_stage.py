"""A stage carries out each effect once, tested with a broker that acknowledges on request."""

import asyncio
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from contracts.events import DeadLetter
from services.common.records import Decide, Effect, Incoming, Refusal
from services.common.stage import Stage


class SlowBroker:
    """Accepts records and acknowledges the ones that the test selects."""

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
    """Run pending callbacks and the callbacks that they schedule. No time passes."""
    for _ in range(3):
        await asyncio.sleep(0)


class Rig:
    """A stage, its broker, and the acknowledged offsets."""

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
    rig = Rig()
    await rig.take(0, b"a")
    await rig.take(1, b"b")
    assert [effect.value for effect in rig.broker.taken] == [b"a", b"b"]
    assert rig.acknowledged == []
    await rig.broker.acknowledge(1)
    assert rig.acknowledged == []
    await rig.broker.acknowledge(0)
    assert rig.acknowledged == [0, 1]


async def test_a_repeat_of_a_pending_record_is_acknowledged_together_with_it() -> None:
    rig = Rig()
    await rig.take(0, b"a")
    rig.stage.on_revoked()  # the partition is read again from the committed offset
    await rig.take(0, b"a")
    assert len(rig.broker.taken) == 1
    assert rig.acknowledged == []
    await rig.broker.acknowledge(0)
    assert rig.acknowledged == [0]


async def test_an_effect_written_before_the_start_is_not_written_again() -> None:
    rig = Rig()
    rig.stage.on_assigned(["id of a"])
    await rig.take(7, b"a")
    assert rig.broker.taken == []
    assert rig.acknowledged == [7]


async def test_a_refused_record_becomes_one_dead_letter_with_all_reasons() -> None:
    rig = Rig()
    await rig.take(5, b"bad")
    await rig.take(5, b"bad")
    (effect,) = rig.broker.taken
    letter = msgspec.json.decode(effect.value or b"", type=DeadLetter)
    assert effect.topic == "dead.letters"
    assert effect.key == b"key"
    assert letter.letter_id == "payments.settled/0/5"
    assert letter.reasons == ("it is bad", "card ************1111 too")
    assert letter.order_id == "o-1"


async def test_a_letter_is_bare_if_the_broker_only_accepts_small_records() -> None:
    rig = Rig()
    rig.stage.max_record_bytes = 4096
    await rig.take(5, b"bad")
    (effect,) = rig.broker.taken
    letter = msgspec.json.decode(effect.value or b"", type=DeadLetter)
    assert (letter.payload, letter.payload_bytes) == ("", 3)
    assert letter.reasons == ("it is bad (cut: the topic takes small records only)",)


async def test_an_unexpected_record_does_not_stop_the_records_behind_it() -> None:
    def fail(record: Incoming) -> Iterator[Effect]:
        raise OverflowError("date value out of range")

    rig = Rig()
    await rig.take(0, b"a", fail)
    await rig.take(1, b"b")
    letter = msgspec.json.decode(rig.broker.taken[0].value or b"", type=DeadLetter)
    assert letter.reasons == ("shipment cannot process it: OverflowError: date value out of range",)
    await rig.broker.acknowledge(0, 1)
    assert rig.acknowledged == [0, 1]


@pytest.mark.parametrize("failure", [OSError("gone"), None], ids=["refused", "cancelled"])
async def test_a_failed_write_ends_the_stage_without_an_acknowledgement(failure: Exception | None) -> None:
    rig = Rig()
    await rig.take(0, b"a")
    answer = rig.broker.answers[0]
    if failure is None:
        answer.cancel()
    else:
        answer.set_exception(failure)
    await turns()
    assert "shipments.scheduled" in str(rig.stage.failed.result())
    assert rig.acknowledged == []


async def test_drain_waits_for_pending_sends_up_to_its_deadline() -> None:
    rig = Rig()
    assert await rig.stage.drain(0.0)
    await rig.take(0, b"a")
    assert not await rig.stage.drain(0.0)
    draining = asyncio.create_task(rig.stage.drain(5.0))
    await asyncio.sleep(0)
    await rig.broker.acknowledge(0)
    assert await draining
