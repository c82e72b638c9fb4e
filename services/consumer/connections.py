"""aiokafka's client, changed so that a broker whose host has vanished delays no request to another broker.

aiokafka sets up one connection at a time. While it waits for a silent host, no request reaches the other brokers. Then
each waiting request tries the silent host again, and the metadata is not refreshed. In aiokafka only a fetch notices
that a partition has a new leader. An offset query would be sent to the old leader for ever. `Client` changes all this.

If a fetch finds no records, the broker delays its answer, and answers nothing else on that connection meanwhile. So a
fetch can be recalled: the client ignores its answer and sends the next fetch on a second connection. A partition that
was just taken does not wait for the delayed answer. `PromptFetcher` sends each next fetch at once.
"""

import asyncio
import time
from contextlib import nullcontext
from math import inf
from typing import Any, Final

from aiokafka.client import AIOKafkaClient, ConnectionGroup
from aiokafka.conn import CloseReason
from aiokafka.consumer.fetcher import Fetcher
from aiokafka.errors import for_code
from aiokafka.protocol.fetch import FetchRequest
from aiokafka.protocol.offset import OffsetRequest
from aiokafka.structs import TopicPartition

from contracts.clock import monotonic_s

CONNECT_WAIT_SHARE: Final = 1 / 4
"""How long a request waits for a connection, as a share of the request time-out. Then the metadata is refreshed."""


class Client(AIOKafkaClient):  # type: ignore[misc]  # aiokafka ships no types
    """Connects to all brokers concurrently, with one attempt at a time for each connection."""

    _attempts: dict[Any, "asyncio.Future[Any]"]

    @classmethod
    def adopt(cls, client: Any) -> None:
        """Replace the class of `client`, which must not have connected yet."""
        client.__class__ = cls
        client._get_conn_lock_value = nullcontext()
        client._attempts = {}

    async def close(self) -> None:
        """Disconnect."""
        for attempt in self._attempts.values():
            attempt.cancel()
        await super().close()

    async def send(self, node_id: Any, request: Any, *, group: Any = ConnectionGroup.DEFAULT) -> Any:
        """Send a request and return its response. An offset query to a former leader refreshes the metadata."""
        response = await super().send(node_id, request, group=group)
        if isinstance(request, OffsetRequest):
            codes = {code for _, partitions in response.topics for _, code, *_ in partitions}
            if any(for_code(code).invalid_metadata for code in codes):
                self.force_metadata_update()
        return response

    async def _get_conn(self, node_id: Any, *, group: Any = ConnectionGroup.DEFAULT, no_hint: bool = False) -> Any:
        """Return the connection. None: not connected yet. The metadata is refreshed meanwhile."""
        key = (node_id, group)
        connection = self._conns.get(key)
        if connection is not None and connection.connected():
            # A write to a transport that is closing would raise RuntimeError, which ends the replica.
            if not (connection._writer.is_closing() or self._is_silent(connection)):
                return connection
            connection.close(reason=CloseReason.CONNECTION_BROKEN)
        attempt = self.connect(node_id, group)
        await asyncio.wait([attempt], timeout=self._request_timeout_ms / 1000 * CONNECT_WAIT_SHARE)
        if attempt.done() and not attempt.cancelled():  # `close` cancels attempts, but must not cancel the caller
            return attempt.result()
        self.force_metadata_update()
        return None

    def connect(self, node_id: Any, group: Any) -> "asyncio.Future[Any]":
        """Return the connection attempt in progress, or begin one."""
        key = (node_id, group)
        attempt = self._attempts.get(key)
        if attempt is None:
            attempt = self._attempts[key] = asyncio.ensure_future(super()._get_conn(node_id, group=group))
            attempt.add_done_callback(lambda _: self._attempts.pop(key))
        return attempt

    def _is_silent(self, connection: Any) -> bool:
        """Return whether its oldest request has timed out, and nothing was received for a whole time-out."""
        requests = connection._requests
        has_timed_out = bool(requests) and requests[0][-1].done()
        return has_timed_out and time.monotonic() - connection._last_action > self._request_timeout_ms / 1000


BUSY_FETCH_WAIT_MS: Final = 25
"""How long a broker may delay an empty fetch. A partition that the fetch does not include, because its backlog was full
or not polled yet, waits for its end."""
WHOLE_FETCH_WAIT_MS: Final = 500
"""As BUSY_FETCH_WAIT_MS, if the fetch includes every partition, so that members do not keep a broker busy."""
FETCH_GROUPS: Final = ("fetch", "fetch again")
"""Connection groups for fetches, so that other requests never wait behind a fetch."""


class RecallingClient(Client):
    """The consumer's client, which can recall fetches."""

    is_whole: bool
    """Whether the next fetch includes every partition: none is paused or has records that were not polled."""
    _fetch_connections: "dict[Any, _FetchConnections]"

    @classmethod
    def adopt(cls, client: Any) -> None:
        """Replace the class of `client`, which must not have connected yet."""
        super().adopt(client)
        client.is_whole = False
        client._fetch_connections = {}

    async def send(self, node_id: Any, request: Any, *, group: Any = ConnectionGroup.DEFAULT) -> Any:
        """Send a request and return its response. A recalled fetch raises CancelledError, which aiokafka expects."""
        if not isinstance(request, FetchRequest):
            return await super().send(node_id, request, group=group)
        pair = self._fetch_connections.setdefault(node_id, _FetchConnections())
        request._max_wait_ms = pair.wait_ms(self.is_whole)
        answer, recalled = pair.sent(asyncio.ensure_future(super().send(node_id, request, group=pair.next)))
        self._open(node_id, pair.other)
        try:
            await asyncio.wait([answer, recalled], return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            pair.swap()
            raise
        if not answer.done():
            raise asyncio.CancelledError
        return answer.result()

    def open_fetch_connections(self, topic: str) -> None:
        """Connect to the leaders of `topic`, so that the first fetch of a new replica waits for no connection."""
        places = (TopicPartition(topic, number) for number in self.cluster.partitions_for_topic(topic) or ())
        for node_id in {self.cluster.leader_for_partition(place) for place in places} - {None, -1}:
            self._open(node_id, FETCH_GROUPS[0])

    def recall(self) -> None:
        """Recall the fetch at every broker, except brokers that have not answered the previously recalled fetch."""
        for connections in self._fetch_connections.values():
            connections.swap()

    def _open(self, node_id: Any, group: str) -> None:
        connection = self._conns.get((node_id, group))
        if connection is None or not connection.connected():
            self.connect(node_id, group)


class _FetchConnections:
    """The two connections to one broker."""

    def __init__(self) -> None:
        self.next, self.other = FETCH_GROUPS
        self._answers: dict[str, asyncio.Future[Any]] = {}
        self._recalled: asyncio.Future[None] | None = None
        self._recalled_s = 0.0

    def wait_ms(self, is_whole: bool) -> int:
        """Return how long the broker may delay an empty fetch that is sent now.

        A fetch cannot be recalled while an earlier one is recalled and not answered. Then the wait is short at first,
        and at most doubles the time since that recall.
        """
        since_ms = inf if self._is_free(self.other) else 1000 * (monotonic_s() - self._recalled_s)
        return round(min(WHOLE_FETCH_WAIT_MS, max(BUSY_FETCH_WAIT_MS, since_ms))) if is_whole else BUSY_FETCH_WAIT_MS

    def sent(self, answer: "asyncio.Future[Any]") -> "tuple[asyncio.Future[Any], asyncio.Future[None]]":
        """Note `answer`, to a fetch sent on the connection `next`. Return it, and a future that is done at a recall."""
        answer.add_done_callback(lambda done: done.cancelled() or done.exception())  # retrieved: no warning by asyncio
        self._answers[self.next] = answer
        self._recalled = asyncio.get_running_loop().create_future()
        return answer, self._recalled

    def swap(self) -> None:
        """Recall the fetch in progress, if the other connection is free."""
        if self._is_free(self.next) or not self._is_free(self.other):
            return
        self.next, self.other, self._recalled_s = self.other, self.next, monotonic_s()
        if self._recalled is not None and not self._recalled.done():
            self._recalled.set_result(None)

    def _is_free(self, group: str) -> bool:
        return group not in self._answers or self._answers[group].done()


class PromptFetcher(Fetcher):  # type: ignore[misc]  # aiokafka ships no types
    """Sends the next fetch as soon as one has ended.

    For aiokafka a broker is busy until the turn of the event loop after the end of its fetch. If a poll or a handover
    wakes the fetcher before that turn, aiokafka sends nothing and sleeps for 0.2 s.
    """

    @classmethod
    def adopt(cls, consumer: Any) -> None:
        """Replace the class of the fetcher of `consumer`, which was started."""
        consumer._fetcher.__class__ = cls

    def _get_actions_per_node(self, assignment: Any) -> Any:
        fetches, queries, sleep_s, *others = super()._get_actions_per_node(assignment)
        has_ended = len(self._in_flight) > len(self._pending_tasks)
        return fetches, queries, 0.0 if has_ended else sleep_s, *others
