"""A recalled fetch: the next one is sent at once, on the other of two connections."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.client import AIOKafkaClient, ConnectionGroup
from aiokafka.protocol.fetch import FetchRequest

from services.consumer import poller
from services.consumer.connections import FETCH_GROUPS, RecallingClient

NODE = 0
FIRST, SECOND = FETCH_GROUPS


class Broker:
    """Holds all requests until `answer` completes the oldest of a connection."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.pending: dict[Any, list[asyncio.Future[str]]] = {}
        self.opened: list[Any] = []
        monkeypatch.setattr(AIOKafkaClient, "send", self._send)
        self.client = AIOKafkaClient()
        RecallingClient.adopt(self.client)
        monkeypatch.setattr(RecallingClient, "connect", lambda _, node, way: self.opened.append(way))

    async def _send(self, node_id: int, request: Any, *, group: Any = ConnectionGroup.DEFAULT) -> str:
        answer = asyncio.get_running_loop().create_future()
        self.pending.setdefault(group, []).append(answer)
        return await answer

    async def fetch(self) -> "asyncio.Future[str]":
        """Send a fetch."""
        fetch = asyncio.ensure_future(self.client.send(NODE, FetchRequest(500, 1, 1, 0, [])))
        await asyncio.sleep(0.001)
        return fetch

    def busy(self) -> dict[Any, int]:
        """Return connection → number of its unanswered requests."""
        return {way: len(pending) for way, pending in self.pending.items() if pending}

    def answer(self, way: Any, response: str) -> None:
        self.pending[way].pop(0).set_result(response)


async def test_a_recalled_fetch_ends_at_once_and_the_next_uses_the_other_connection(monkeypatch):
    broker = Broker(monkeypatch)
    first = await broker.fetch()
    broker.client.recall()
    with pytest.raises(asyncio.CancelledError):
        await first
    second = await broker.fetch()
    assert broker.busy() == {FIRST: 1, SECOND: 1}
    broker.client.recall()  # the first is not answered: a third would wait behind it
    await asyncio.sleep(0.001)
    assert not second.done()
    broker.answer(FIRST, "too late")
    await asyncio.sleep(0.001)
    broker.client.recall()
    with pytest.raises(asyncio.CancelledError):
        await second
    third = await broker.fetch()
    broker.answer(FIRST, "now")
    assert await third == "now"


def test_a_fetch_waits_long_only_if_it_includes_every_partition():
    now_s = poller.monotonic_s()
    consumer = SimpleNamespace(
        _fetcher=SimpleNamespace(_fetch_max_wait_ms=0, _records={}),
        _client=SimpleNamespace(recalled_s=now_s - 2, recall=lambda: None),
    )

    def pending(**how: bool) -> int:
        poller.set_fetch_wait(consumer, **how)
        return consumer._fetcher._fetch_max_wait_ms

    assert (pending(is_whole=False), pending(is_whole=True)) == (poller.BUSY_FETCH_WAIT_MS, poller.WHOLE_FETCH_WAIT_MS)
    consumer._fetcher._records = {0: "not polled yet"}
    assert pending(is_whole=True) == poller.BUSY_FETCH_WAIT_MS, "aiokafka leaves this partition out"
    consumer._fetcher._records = {}
    poller.recall_fetches(consumer)
    assert consumer._fetcher._fetch_max_wait_ms == poller.BUSY_FETCH_WAIT_MS
    consumer._client.recalled_s = now_s
    assert pending(is_whole=True) == poller.BUSY_FETCH_WAIT_MS, "the recalled fetch may not be answered yet"
