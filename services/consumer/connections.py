"""aiokafka's client, made so that a broker whose host has vanished holds nobody up who wants another one.

aiokafka sets up one connection at a time: while it waits for a silent host nobody gets to those that answer, and who
has waited tries the same host again, one after the other. And where it was told no metadata, it asks there again.
One that leads a partition no more is found out by a fetch; the search for a position would ask it for ever, and nothing
else is fetched from it meanwhile.
"""

import asyncio
import time
from contextlib import nullcontext
from typing import Any, Final

from aiokafka.client import AIOKafkaClient, ConnectionGroup
from aiokafka.conn import CloseReason
from aiokafka.errors import for_code
from aiokafka.protocol.offset import OffsetRequest

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
