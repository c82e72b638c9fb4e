"""The next fetch is sent at once: behind a recalled one on the other connection, and behind one that has ended."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.client import AIOKafkaClient, ConnectionGroup
from aiokafka.protocol.fetch import FetchRequest
from aiokafka_bench import ZERO, Fetching, take_turns

from services.consumer.connections import (
    BUSY_FETCH_WAIT_MS,
    FETCH_GROUPS,
    IDLE_FETCH_WAIT_MS,
    PromptFetcher,
    RecallingClient,
)

NODE = 0
FIRST, SECOND = FETCH_GROUPS


class Broker:
    """Holds all requests until `answer` completes the oldest of a connection."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.pending: dict[Any, list[asyncio.Future[str]]] = {}
        self.opened: list[Any] = []
        self.waits_ms: list[int] = []
        monkeypatch.setattr(AIOKafkaClient, "send", self._send)
        self.client = AIOKafkaClient()
        RecallingClient.adopt(self.client)
        monkeypatch.setattr(RecallingClient, "connect", lambda _, node, way: self.opened.append(way))

    async def _send(self, node_id: int, request: Any, *, group: Any = ConnectionGroup.DEFAULT) -> str:
        answer = asyncio.get_running_loop().create_future()
        self.waits_ms.append(request._max_wait_ms)
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


async def test_an_empty_fetch_waits_long_only_while_no_event_arrives_and_it_can_be_recalled(monkeypatch):
    broker = Broker(monkeypatch)
    await broker.fetch()
    broker.answer(FIRST, "records")
    broker.client.is_idle = True
    await broker.fetch()
    broker.client.recall()
    await broker.fetch()
    broker.answer(SECOND, "nothing")
    broker.answer(FIRST, "the recalled one")
    await broker.fetch()
    assert broker.waits_ms == [BUSY_FETCH_WAIT_MS, IDLE_FETCH_WAIT_MS, BUSY_FETCH_WAIT_MS, IDLE_FETCH_WAIT_MS]


async def test_a_fetcher_that_is_woken_just_before_a_fetch_ends_sends_the_next_one_at_once():
    async with Fetching() as bench:
        answers = []

        async def send(node: int, request: Any) -> Any:
            answers.append(asyncio.get_running_loop().create_future())
            return await answers[-1]

        bench.wire.send = send
        PromptFetcher.adopt(bench.consumer)
        bench.change(ZERO, positions={ZERO: 0})
        bench.fetcher._fetch_task = asyncio.ensure_future(bench.fetcher._fetch_requests_routine())
        await take_turns()
        bench.change(ZERO)  # wakes the fetcher
        answers[0].set_result(SimpleNamespace(API_VERSION=4, topics=[]))
        await take_turns()
        assert len(answers) == 2, "without the change to aiokafka it sleeps for 0.2 s first"
        await bench.fetcher.close()
