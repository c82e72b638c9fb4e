"""aiokafka's client, changed so that a broker whose host has vanished delays no request to another broker.

aiokafka sets up one connection at a time: while it waits for a silent host, no request reaches those that answer, and
each that has waited tries the same host again. Where it got no metadata it asks again. Only a fetch notices that a
broker leads a partition no more; the search for a position would ask it for ever.

A broker keeps a fetch that finds nothing for a while, and answers nothing else on that connection until then. A fetch
can be called back: it is forgotten, and the next one takes the other of two connections, so that a partition that is
taken does not wait for it.
"""

import asyncio
import time
from contextlib import nullcontext
from typing import Any, Final

from aiokafka.client import AIOKafkaClient, ConnectionGroup
from aiokafka.conn import CloseReason
from aiokafka.errors import for_code
from aiokafka.protocol.fetch import FetchRequest
from aiokafka.protocol.offset import OffsetRequest

from contracts.clock import steady_s

PATIENCE: Final = 1 / 4
"""Share of the time of an answer. Who has waited for a connection for so long looks for another broker meanwhile."""


class Client(AIOKafkaClient):  # type: ignore[misc]  # aiokafka ships no types
    """One attempt at a time for each connection, all of them side by side; nobody waits for one to its end."""

    _attempts: dict[Any, "asyncio.Future[Any]"]

    @classmethod
    def adopt(cls, client: Any) -> None:
        """Make `client`, which has not connected yet, one of ours."""
        client.__class__ = cls
        client._get_conn_lock_value = nullcontext()
        client._attempts = {}

    async def close(self) -> None:
        """Disconnect."""
        for attempt in self._attempts.values():
            attempt.cancel()
        await super().close()

    async def send(self, node_id: Any, request: Any, *, group: Any = ConnectionGroup.DEFAULT) -> Any:
        """Send a request and return its response; who is told that another broker leads looks who that is."""
        response = await super().send(node_id, request, group=group)
        if isinstance(request, OffsetRequest):
            codes = {code for _, partitions in response.topics for _, code, *_ in partitions}
            if any(for_code(code).invalid_metadata for code in codes):
                self.force_metadata_update()
        return response

    async def _get_conn(self, node_id: Any, *, group: Any = ConnectionGroup.DEFAULT, no_hint: bool = False) -> Any:
        """Return the connection; None where there is none yet, and it is time to see whether another broker leads."""
        way = (node_id, group)
        there = self._conns.get(way)
        if there is not None and self._is_silent(there):
            there.close(reason=CloseReason.CONNECTION_TIMEOUT)
        elif there is not None and there.connected():
            return there
        attempt = self.connect(node_id, group)
        await asyncio.wait([attempt], timeout=self._request_timeout_ms / 1000 * PATIENCE)
        if attempt.done() and not attempt.cancelled():  # closed meanwhile: who asks is not to be cancelled by that
            return attempt.result()
        self.force_metadata_update()
        return None

    def connect(self, node_id: Any, group: Any) -> "asyncio.Future[Any]":
        """Return the attempt that is under way, or begin one."""
        way = (node_id, group)
        attempt = self._attempts.get(way)
        if attempt is None:
            attempt = self._attempts[way] = asyncio.ensure_future(super()._get_conn(node_id, group=group))
            attempt.add_done_callback(lambda _: self._attempts.pop(way))
        return attempt

    def _is_silent(self, connection: Any) -> bool:
        """Return whether its oldest request was given up, and nothing has come since it was sent."""
        requests = connection._requests
        given_up = bool(requests) and requests[0][-1].done()
        return given_up and time.monotonic() - connection._last_action > self._request_timeout_ms / 1000


WAYS: Final = ("fetch", "fetch again")
"""Connections of their own: the plain one stays free for what must not wait behind a fetch."""


class RecallingClient(Client):
    """The consumer's client."""

    recalled_s: float
    """When a fetch was last called back, by the steady clock."""
    _ways: "dict[Any, _Ways]"

    @classmethod
    def adopt(cls, client: Any) -> None:
        """Make `client`, which has not connected yet, one of ours."""
        super().adopt(client)
        client.recalled_s = -float("inf")
        client._ways = {}

    async def send(self, node_id: Any, request: Any, *, group: Any = ConnectionGroup.DEFAULT) -> Any:
        """Send a request and return its response. Raises CancelledError for a recalled fetch; aiokafka expects it."""
        if not isinstance(request, FetchRequest):
            return await super().send(node_id, request, group=group)
        ways = self._ways.setdefault(node_id, _Ways())
        answer, recalled = ways.sent(asyncio.ensure_future(super().send(node_id, request, group=ways.next)))
        self._open(node_id, ways.other)
        try:
            await asyncio.wait([answer, recalled], return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            ways.change()
            raise
        if not answer.done():
            raise asyncio.CancelledError
        return answer.result()

    def recall(self) -> None:
        """Call back every fetch under way, but where the one called back before it is still kept by its broker."""
        self.recalled_s = steady_s()
        for ways in self._ways.values():
            ways.change()

    def _open(self, node_id: Any, way: str) -> None:
        there = self._conns.get((node_id, way))
        if there is None or not there.connected():
            self.connect(node_id, way)


class _Ways:
    """The two connections to one broker."""

    def __init__(self) -> None:
        self.next, self.other = WAYS
        self._answers: dict[str, asyncio.Future[Any]] = {}
        self._recalled: asyncio.Future[None] | None = None

    def sent(self, answer: "asyncio.Future[Any]") -> "tuple[asyncio.Future[Any], asyncio.Future[None]]":
        """Note what the next connection has been asked; return it, and what is done once that is called back."""
        answer.add_done_callback(lambda done: done.cancelled() or done.exception())  # seen, also if nobody waits
        self._answers[self.next] = answer
        self._recalled = asyncio.get_running_loop().create_future()
        return answer, self._recalled

    def change(self) -> None:
        """Call back what is under way, if the other connection is free."""
        if self._is_free(self.next) or not self._is_free(self.other):
            return
        self.next, self.other = self.other, self.next
        if self._recalled is not None and not self._recalled.done():
            self._recalled.set_result(None)

    def _is_free(self, way: str) -> bool:
        return way not in self._answers or self._answers[way].done()
