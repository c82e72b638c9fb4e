"""The Order app without a broker: Faust's own agents, a producer that remembers."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from services_stack import order

from contracts.connection import Connection
from contracts.events import DeadLetter, Grouping, PaymentRequested
from services.common.service import Service
from services.order.__main__ import OrderSettings, build


class Memory:
    """Stands in for Faust's producer: remembers each record and acknowledges it at once."""

    def __init__(self) -> None:
        self.records: list[tuple[str, bytes | None, bytes | None, int | None]] = []

    async def send(
        self, topic: str, key: bytes | None, value: bytes | None, partition: int | None, *_: Any
    ) -> "asyncio.Future[None]":
        self.records.append((topic, key, value, partition))
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        done.set_result(None)
        return done

    def on(self, topic: str) -> list[tuple[bytes, int | None]]:
        return [(value or b"", partition) for name, _, value, partition in self.records if name == topic]


@asynccontextmanager
async def order_agent(folder: Path) -> AsyncIterator[tuple[Service, Any, Memory]]:
    """Yield the service, its agent's stream, and what its producer was given."""
    settings = OrderSettings(data_dir=str(folder), payment_partitions=9, grouping=Grouping.EXPLICIT, demo=True)
    service = build(Connection(bootstrap_servers="127.0.0.1:1", namespace="t"), settings)
    memory = Memory()
    service.app.producer = memory
    service.stage.assigned([])
    async with service.app.agents["t.order-t.orders.placed"].test_context() as context:
        yield service, context, memory


async def put(context: Any, value: bytes | None, **headers: bytes) -> None:
    await context.put(value, key=b"o-1", headers=headers or None)
    for _ in range(5):  # lets the acknowledgements be called; no time passes
        await asyncio.sleep(0)


async def test_an_order_becomes_a_payment_request_in_its_partition(tmp_path: Path) -> None:
    async with order_agent(tmp_path) as (service, context, memory):
        await put(context, order("o-1"), partition=b"7", intended_at=b"123", placed_at=b"456")
        ((value, partition),) = memory.on("t.payments.requested")
        request = msgspec.json.decode(value, type=PaymentRequested)
        assert partition == 7
        assert (request.timeline.intended_us, request.timeline.placed_us) == (123, 456)
        assert request.timeline.accepted_us is not None
        assert service.stage.open.count == 0
        assert len(memory.on("t.orders.status")) == 1


async def test_what_cannot_be_accepted_becomes_a_dead_letter(tmp_path: Path) -> None:
    async with order_agent(tmp_path) as (service, context, memory):
        for value in (b"{", None, order("o-1", v=2), b" " * 20_000):
            await put(context, value)
        await put(context, order("o-1"), partition=b"9")
        await put(context, order("o-1"), intended_at=b"soon")
        letters = [msgspec.json.decode(value, type=DeadLetter) for value, _ in memory.on("t.dead.letters")]
        found = [letter.reasons[0] for letter in letters]
        told = ["not JSON", "no value", "version 2 is unknown", "20000 bytes", "partition is 9", "intended_at"]
        assert all(part in reason for part, reason in zip(told, found, strict=True))
        assert [letter.offset for letter in letters] == list(range(6))
        assert memory.on("t.payments.requested") == []
        assert service.stage.open.count == 0


async def test_nothing_is_answered_before_the_past_is_read_back(tmp_path: Path) -> None:
    settings = OrderSettings(data_dir=str(tmp_path), payment_partitions=3, demo=True)
    service = build(Connection(bootstrap_servers="127.0.0.1:1"), settings)
    application = web.Application()
    application.add_routes(service.routes)
    async with TestClient(TestServer(application)) as client:
        for answer in (await client.get("/orders/o-1"), await client.post("/orders", json={})):
            assert (answer.status, answer.headers.get("Retry-After")) == (503, "1")
        assert service.unhealthy() is not None
