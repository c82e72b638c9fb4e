"""The HTTP interface of Order without a broker."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from services_stack import CARD

from contracts.connection import Connection
from services.common.service import Service
from services.order.__main__ import OrderSettings, build


@asynccontextmanager
async def order_service(folder: Path, token: str = "") -> AsyncIterator[tuple[Service, TestClient[Any, Any]]]:
    (folder / "token").write_text(token)
    own = {"api_token_file": str(folder / "token")} if token else {}
    settings = OrderSettings(data_dir=str(folder), payment_partitions=3, demo=True, **own)
    service = build(Connection(bootstrap_servers="127.0.0.1:1"), settings)
    application = web.Application()
    application.add_routes(service.routes)
    async with TestClient(TestServer(application)) as client:
        yield service, client


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": ""}, 415),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Host": "evil.example", "Origin": "http://evil.example"}, 403),
        ({"Host": "[evil", "Origin": "http://[evil"}, 400),
        ({"Host": "order:8080", "Origin": "http://order:8080"}, 422),
        ({"Host": "order.run-1.svc.cluster.local"}, 422),
        ({"Host": "[::1]:8080"}, 422),
        ({"Idempotency-Key": "\udcff"}, 422),
    ],
)
async def test_no_page_of_another_site_places_an_order(tmp_path: Path, headers: dict[str, str], code: int) -> None:
    async with order_service(tmp_path) as (service, client):
        service.stage.may_run.set()
        answer = await client.post("/orders", data=b"[]", headers={"Content-Type": "application/json"} | headers)
        assert answer.status == code
        if code == 403:
            assert (await client.get("/orders/o-1", headers=headers)).status == 403


async def test_no_card_number_is_quoted_in_an_answer(tmp_path: Path) -> None:
    async with order_service(tmp_path) as (service, client):
        service.stage.may_run.set()
        answer = await client.post("/orders", json={"merchant": CARD, "currency": CARD})
        assert (answer.status, CARD in await answer.text()) == (422, False)


async def test_with_a_token_any_host_is_served(tmp_path: Path) -> None:
    async with order_service(tmp_path, "t" * 16) as (service, client):
        service.stage.may_run.set()
        headers = {"Host": "shop.example", "Authorization": "Bearer " + "t" * 16}
        assert (await client.get("/orders/o-1", headers=headers)).status == 404


async def test_requests_get_503_until_the_status_of_orders_is_read_back(tmp_path: Path) -> None:
    async with order_service(tmp_path) as (service, client):
        for answer in (await client.get("/orders/o-1"), await client.post("/orders", json={})):
            assert (answer.status, answer.headers.get("Retry-After")) == (503, "1")
        assert service.unhealthy_reason() is not None
