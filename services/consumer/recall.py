"""Fetches that can be called back: a partition that is taken does not wait for the fetch under way.

A broker keeps a fetch that finds nothing for a while, and until then answers nothing else on that connection; aiokafka
sends it no other fetch meanwhile. One that is called back is forgotten, and the next takes the other of two ways there.
"""

import asyncio
from typing import Any, Final

from aiokafka.client import ConnectionGroup
from aiokafka.protocol.fetch import FetchRequest

from contracts.clock import steady_s
from services.consumer.connections import Client

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
        """Connect before the way is needed."""
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
