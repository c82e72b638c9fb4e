"""The HTTP interface of an Order service whose table is not there yet."""

import asyncio
from pathlib import Path

from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from contracts.connection import Connection
from services.order.app import build
from services.order.settings import OrderSettings


def test_nothing_is_answered_from_a_table_that_is_still_being_recovered(tmp_path: Path) -> None:
    async def ask() -> list[tuple[int, str | None]]:
        settings = OrderSettings(data_dir=str(tmp_path), payment_partitions=3)
        service = build(Connection(bootstrap_servers="127.0.0.1:1"), settings)
        application = web.Application()
        application.add_routes(service.routes)
        async with TestClient(TestServer(application)) as client:
            answers = [await client.get("/orders/o-1"), await client.post("/orders", json={})]
            assert service.unhealthy() is not None
            return [(answer.status, answer.headers.get("Retry-After")) for answer in answers]

    assert asyncio.run(ask()) == [(503, "1"), (503, "1")]
