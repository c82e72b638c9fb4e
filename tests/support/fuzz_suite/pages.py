"""Targets: requests to the pages of a process and to Order's interface."""

import asyncio
import socket
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Final

from aiohttp.base_protocol import BaseProtocol
from aiohttp.streams import StreamReader
from aiohttp.test_utils import make_mocked_request
from prometheus_client import CollectorRegistry

from autoscaler.live.web import PAGES, Source, respond
from contracts.events import MAX_ORDER_BYTES
from contracts.pages import _Handler, http_error
from fuzz_suite.events import ORDER
from fuzz_suite.inputs import CARD, NOW_US, Inputs
from services.order.http import MAX_REQUEST_AGE_US, OrdersApi, _intended_us
from services.order.status import StatusBoard

PATHS: Final = (*PAGES, "", "//", "/../etc/passwd", "/%2e%2e", "/%00", "/%ff", "/" + "a" * 500, "*", "http://x/plan")
QUERIES: Final = ("", "?limit=1", "?limit=", "?limit=" + "9" * 5000, "?limit=²", "?limit=%ff", "?" + "&" * 500)
HEADERS: Final = {
    "Content-Type": ("application/json", "application/json; charset=x", "text/plain", "", ";", "a/b/c", "é"),
    "Host": ("order:8080", "[::1]:8080", "[evil", "evil.example", "", ":", "127.0.0.1", "\udcff", "a" * 5000, "[é]"),
    "Origin": ("null", "", "http://order:8080", "http://[evil", "\udcff", "//", "http://"),
    "Authorization": ("Bearer " + "t" * 16, "Bearer", "", "Basic \udcff", "bearer  x"),
    "Idempotency-Key": ("k", "", "é" * 300, "\udcff", "a" * 201, "\0", " ", "a b"),
    "X-Request-Start": ("t=5", "t=1700000000.5", "t=" + "9" * 12, "t=" + "9" * 400, "t=-1", "t=1e9", "t=١", "\udcff"),
}
CODES: Final = {202, 400, 401, 403, 404, 413, 415, 422, 503}


class Sent(str):
    """Text that encodes to the bytes that a client sent: no UTF-8."""

    def encode(self, *_: str) -> bytes:
        return super().encode("utf-8", "surrogateescape")


class Pages(Inputs):
    """Requests of clients."""

    def __init__(self, seed: int, folder: Path) -> None:
        super().__init__(seed, folder)
        registry = CollectorRegistry()
        source = Source(last_tick=lambda: (1, 0.0), plan=dict, registry=registry, tick_limit_s=1)
        self._respond = partial(respond, source)

    def http_pages(self) -> None:
        """The server of the autoscaler's, the scaler's and the replicas' pages."""
        words = (("GET", "HEAD", "POST", "get", "BREW", ""), ("HTTP/1.1", "HTTP/1.0", "HTTP/0.9", "HTTP/9", "", "x"))
        method, version = (self._chance.choice(each) for each in words)
        target = f"{self._chance.choice(PATHS)}{self._chance.choice(QUERIES)}"
        headers = [f"{name}: {value}" for name, value in self._headers().items()]
        request = "\r\n".join((f"{method} {target} {version}", *headers, "Connection: close", "", ""))
        data = request.encode("utf-8", "surrogateescape")
        client, server = socket.socketpair()
        with client, server:
            client.sendall(self._spliced(data) if self._chance.random() < 0.5 else data)
            client.shutdown(socket.SHUT_WR)
            _Handler(self._respond, lambda *_: http_error("403 Forbidden", "no token"), server, ("", 0), None)

    def order_interface(self) -> None:
        """Every request gets an answer without a card number."""
        asyncio.run(self._order())
        start_us = _intended_us(self._chance.choice((*HEADERS["X-Request-Start"], self._text())), NOW_US)
        assert NOW_US - MAX_REQUEST_AGE_US <= start_us <= NOW_US, "a client sets another time"

    async def _order(self) -> None:
        sent: list[bytes] = []

        async def send(*record: object) -> None:
            sent.append(record[2])

        ready = SimpleNamespace(is_set=lambda: True)
        app = SimpleNamespace(rebalancing=False, producer=SimpleNamespace(send_and_wait=send))
        service = SimpleNamespace(topic_name=str, app=app, stage=SimpleNamespace(may_run=ready))
        token = self._chance.choice(("", "t" * 16))
        api = OrdersApi(service, StatusBoard("t", 10), "k" * 16, token)
        body = self._record({name: value for name, value in ORDER.items() if name != "order_id"})
        loop = asyncio.get_running_loop()
        payload = StreamReader(BaseProtocol(loop), 2**24, loop=loop)
        payload.feed_data(self._chance.choice((body, body, body, body * 99)))
        payload.feed_eof()
        headers = {"Host": "order", "Content-Type": "application/json"} | self._headers()
        for method, handle in (("POST", api.post), ("GET", api.get)):
            request = make_mocked_request(
                method, "/orders", headers, match_info={"order_id": self._text()}, payload=payload, loop=loop,
                client_max_size=MAX_ORDER_BYTES,
            )  # fmt: skip
            answer = await handle(request)
            assert answer.status in CODES, answer.status
            assert CARD not in (answer.text or ""), "a card number"
        assert len(sent) <= 1

    def _headers(self) -> dict[str, str]:
        drawn = ((name, self._chance.choice(values)) for name, values in HEADERS.items())
        return {name: Sent(value) for name, value in drawn if self._chance.random() < 0.4}
