"""The HTTP interface of Order without a broker."""

from pathlib import Path

from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from contracts.connection import Connection
from services.order.__main__ import OrderSettings, build


async def test_requests_get_503_until_the_status_of_orders_is_read_back(tmp_path: Path) -> None:
    settings = OrderSettings(data_dir=str(tmp_path), payment_partitions=3, demo=True)
    service = build(Connection(bootstrap_servers="127.0.0.1:1"), settings)
    application = web.Application()
    application.add_routes(service.routes)
    async with TestClient(TestServer(application)) as client:
        for answer in (await client.get("/orders/o-1"), await client.post("/orders", json={})):
            assert (answer.status, answer.headers.get("Retry-After")) == (503, "1")
        assert service.unhealthy_reason() is not None
