"""A silent broker does not delay requests to other brokers."""

import asyncio
import time
from collections import deque
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import client as aiokafka_client
from aiokafka.client import AIOKafkaClient, ConnectionGroup

from services.consumer.connections import Client

ANSWER_S = 0.4
SILENT, OTHER = 1, 2


class Connection:
    """The part of a connection that a client uses."""

    def __init__(self) -> None:
        self._requests: deque[Any] = deque()
        self._last_action = time.monotonic()
        self.open = True
        self._writer = SimpleNamespace(is_closing=lambda: False)

    def connected(self) -> bool:
        return self.open

    def close(self, reason: Any = None) -> "asyncio.Future[None]":
        self.open = False
        return asyncio.ensure_future(asyncio.sleep(0))


class Brokers:
    """A client of two brokers, one of which never accepts a connection."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.tried: list[int] = []
        monkeypatch.setattr(aiokafka_client, "create_conn", self._connect)
        self.client = AIOKafkaClient(request_timeout_ms=int(1000 * ANSWER_S))
        Client.adopt(self.client)
        self.client.cluster._brokers = {
            node: SimpleNamespace(nodeId=node, host="h", port=node) for node in (SILENT, OTHER)
        }

    async def _connect(self, host: str, port: int, **_: Any) -> Connection:
        self.tried.append(port)
        if port == SILENT:
            await asyncio.sleep(ANSWER_S)
            raise TimeoutError
        return Connection()

    async def ready(self, *connections: tuple[int, Any]) -> list[bool]:
        return await asyncio.gather(*(self.client.ready(node, group=group) for node, group in connections))


def test_a_silent_broker_does_not_delay_requests_to_another(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        brokers = Brokers(monkeypatch)
        default, coordination = ConnectionGroup.DEFAULT, ConnectionGroup.COORDINATION
        waiting = asyncio.ensure_future(brokers.ready((SILENT, default), (SILENT, default), (SILENT, coordination)))
        await asyncio.sleep(0)
        assert await brokers.ready((OTHER, default)) == [True]
        assert not waiting.done()
        assert await waiting == [False, False, False]
        assert sorted(brokers.tried) == [SILENT, SILENT, OTHER], "one attempt for each connection"
        assert brokers.client._attempts, "the attempt continues"
        assert brokers.client._md_update_waiter.done(), "the metadata is refreshed meanwhile"
        late = asyncio.ensure_future(brokers.client.ready(SILENT))
        await asyncio.sleep(0)
        await brokers.client.close()
        assert await late is False, "a close cancels the attempt, but not its waiter"
        assert not brokers.client._attempts

    asyncio.run(run())


def test_a_connection_without_answers_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        brokers = Brokers(monkeypatch)
        old = await brokers.client._get_conn(OTHER)
        timed_out = asyncio.get_running_loop().create_future()
        old._requests.append((7, None, timed_out))
        old._last_action -= 2 * ANSWER_S
        assert await brokers.client._get_conn(OTHER) is old, "it may still be answered"
        timed_out.cancel()
        assert await brokers.client._get_conn(OTHER) not in (None, old)
        assert not old.open

    asyncio.run(run())
