"""Each Faust stage turns any record into effects or one dead letter, all of limited size."""

import asyncio
from collections.abc import Mapping

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from services_stack import order, settled, shipment

from contracts.connection import Connection
from contracts.events import DeadLetter
from contracts.topics import Topic
from services.common.faust_app import ServiceSettings
from services.common.records import LETTER_LIMIT, Decide, Effect, Incoming
from services.common.service import Service
from services.common.stage import Stage
from services.notification import __main__ as notification
from services.order import __main__ as order_app
from services.shipment import __main__ as shipment_app

NOWHERE = Connection(bootstrap_servers="127.0.0.1:1")
GOOD = (order("o-1"), settled("o-1", accepted=True), settled("o-1", accepted=False), shipment("o-1"))
ODD = ("", "x" * 65, "\x00", 0, -1, 10**16 + 1, 2**70, 1e308, None, True, [], {}, "4111 1111 1111 1111")
HEADERS = st.dictionaries(st.sampled_from(["intended_at", "placed_at", "partition"]), st.binary(max_size=20))


@pytest.fixture(scope="module")
def decisions(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, Decide]]:
    """Return (stage, its decision) for every topic that a Faust service reads."""
    found: list[tuple[str, Decide]] = []
    folder = str(tmp_path_factory.mktemp("faust"))

    async def build() -> None:
        shipment_app.build(NOWHERE, ServiceSettings(data_dir=folder))
        notification.build(NOWHERE, ServiceSettings(data_dir=folder))
        order_app.build(NOWHERE, order_app.OrderSettings(data_dir=folder, payment_partitions=3, demo=True))

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Service, "consume", lambda self, _topic, decide: found.append((self.name, decide)))
        asyncio.run(build())
    return found


@st.composite
def values(draw: st.DrawFn) -> bytes | None:
    """Draw any bytes, or a valid record with some bytes or one field replaced."""
    good = draw(st.sampled_from(GOOD))
    kind = draw(st.integers(0, 3))
    if kind == 0:
        return draw(st.none() | st.binary(max_size=300))
    if kind == 1:
        place = draw(st.integers(0, len(good) - 1))
        return good[:place] + draw(st.binary(max_size=4)) + good[place + draw(st.integers(0, 4)) :]
    fields = msgspec.json.decode(good)
    changed = fields["timeline"] if kind == 2 and "timeline" in fields else fields
    changed[draw(st.sampled_from(sorted(changed)))] = draw(st.sampled_from(ODD) | st.text(max_size=70))
    return msgspec.json.encode(fields)


@settings(max_examples=400)
@given(values(), HEADERS)
def test_any_record_becomes_effects_or_one_dead_letter(
    decisions: list[tuple[str, Decide]], value: bytes | None, headers: Mapping[str, bytes]
) -> None:
    asyncio.run(check_all_stages(decisions, Incoming("topic", 1, 2, -1, b"\xff", value, headers)))


async def check_all_stages(decisions: list[tuple[str, Decide]], record: Incoming) -> None:
    for name, decide in decisions:
        written: list[Effect] = []
        released: list[int] = []

        async def send(effect: Effect, into: list[Effect] = written) -> "asyncio.Future[None]":
            into.append(effect)
            done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            done.set_result(None)
            return done

        stage = Stage(name, Topic.DEAD_LETTERS, send)
        await stage.take(record, decide, lambda into=released: into.append(1))
        for _ in range(3):
            await asyncio.sleep(0)
        letters = [effect for effect in written if effect.topic == Topic.DEAD_LETTERS]
        assert released == [1]
        assert len(letters) == stage.records_refused <= 1
        assert all(len(effect.value or b"") <= LETTER_LIMIT for effect in written)
        for letter in letters:
            assert msgspec.json.decode(letter.value or b"", type=DeadLetter).stage == name
