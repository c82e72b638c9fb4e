"""The next fetch is sent at once: behind a recalled one on the other connection, and behind one that has ended."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.client import AIOKafkaClient, ConnectionGroup
from aiokafka.protocol.fetch import FetchRequest
from aiokafka_bench import ZERO, Fetching, take_turns

from services.consumer import connections
from services.consumer.connections import (
    BUSY_FETCH_WAIT_MS,
    FETCH_GROUPS,
    WHOLE_FETCH_WAIT_MS,
    PromptFetcher,
    RecallingClient,
)

NODE = 0
FIRST, SECOND = FETCH_GROUPS


class Broker:
    """Holds all requests until `answer` completes the oldest of a connection."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.pending: dict[Any, list[asyncio.Future[str]]] = {}
        self.opened: list[tuple[int, Any]] = []
        self.waits_ms: list[int] = []
        monkeypatch.setattr(AIOKafkaClient, "send", self._send)
        self.client = AIOKafkaClient()
        RecallingClient.adopt(self.client)
        monkeypatch.setattr(RecallingClient, "connect", lambda _, *to: self.opened.append(to))

    async def _send(self, node_id: int, request: Any, *, group: Any = ConnectionGroup.DEFAULT) -> str:
        answer = asyncio.get_running_loop().create_future()
        self.waits_ms.append(request._max_wait_ms)
        self.pending.setdefault(group, []).append(answer)
        return await answer

    async def fetch(self, *answered: Any) -> "asyncio.Future[str]":
        """Send a fetch. Then answer the oldest one of each connection in `answered`."""
        fetch = asyncio.ensure_future(self.client.send(NODE, FetchRequest(500, 1, 1, 0, [])))
        await asyncio.sleep(0.001)
        for way in answered:
            self.answer(way, "nothing")
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


async def test_an_empty_fetch_waits_long_only_if_it_has_every_partition_and_can_be_recalled(monkeypatch):
    now_s, broker = 10.0, Broker(monkeypatch)
    monkeypatch.setattr(connections, "monotonic_s", lambda: now_s)
    await broker.fetch(FIRST)
    broker.client.is_whole = True
    await broker.fetch()
    broker.client.recall()
    await broker.fetch(SECOND)
    now_s += 0.2
    await broker.fetch(SECOND, FIRST)
    await broker.fetch()
    assert broker.waits_ms == [BUSY_FETCH_WAIT_MS, WHOLE_FETCH_WAIT_MS, BUSY_FETCH_WAIT_MS, 200, WHOLE_FETCH_WAIT_MS]


async def test_a_fetcher_that_is_woken_just_before_a_fetch_ends_sends_the_next_one_at_once():
    async with Fetching() as bench:
        answers = []
        bench.wire.send = lambda *_: answers.append(asyncio.get_running_loop().create_future()) or answers[-1]
        PromptFetcher.adopt(bench.consumer)
        bench.change(ZERO, positions={ZERO: 0})
        bench.fetcher._fetch_task = asyncio.ensure_future(bench.fetcher._fetch_requests_routine())
        await take_turns()
        bench.change(ZERO)  # wakes the fetcher
        answers[0].set_result(SimpleNamespace(API_VERSION=4, topics=[]))
        await take_turns()
        assert len(answers) == 2, "without the change to aiokafka it sleeps for 0.2 s first"
        await bench.fetcher.close()


async def test_a_new_replica_connects_to_each_leader_before_its_first_fetch(monkeypatch):
    broker, leaders = Broker(monkeypatch), {0: NODE, 1: 5, 2: 5, 3: -1, 4: None}
    leader_of = lambda place: leaders[place.partition]  # noqa: E731
    broker.client.cluster = SimpleNamespace(partitions_for_topic=lambda _: set(leaders), leader_for_partition=leader_of)
    broker.client.open_fetch_connections("requests")
    assert sorted(broker.opened) == [(NODE, FIRST), (5, FIRST)]
