"""Placing an order that came over HTTP: on the topic once per idempotency key, acknowledged within a deadline."""

import asyncio
import uuid
from collections import OrderedDict
from typing import Final

from contracts.clock import now_us
from contracts.events import INTENDED_AT_HEADER, PLACED_AT_HEADER, OrderPlaced
from contracts.topics import Topic
from services.common.codec import encode
from services.common.identity import effect_id
from services.common.service import Service
from services.order.domain import fingerprint
from services.order.status import Status, StatusBoard

ACKNOWLEDGED_WITHIN_S: Final = 5.0
RECENT: Final = 10_000
"""Placed orders remembered here, until the table knows them from the topic."""


class ReusedKeyError(ValueError):
    """The idempotency key stands for another order."""


class AwayError(RuntimeError):
    """The broker did not acknowledge in time. The order may arrive yet; a repeat with the same key is safe."""


class Placer:
    """Writes orders to orders.placed."""

    def __init__(self, service: Service, board: StatusBoard, token_key: str) -> None:
        self._service = service
        self._board = board
        self._token_key = token_key
        self._topic = service.named(Topic.ORDERS_PLACED)
        self._recent: OrderedDict[str, tuple[str, asyncio.Task[None]]] = OrderedDict()

    def order_id(self, key: str | None) -> str:
        """Return the order id that `key` stands for, a new one without a key."""
        return str(uuid.uuid4()) if key is None else effect_id(key, "idempotency-key")

    async def place(self, order: OrderPlaced) -> None:
        """Return when the broker has the order, at once for one that was placed before.

        Raises ReusedKeyError when its id stands for another order, AwayError at the deadline.
        """
        content = fingerprint(order, self._token_key)
        sending = self._known(order.order_id, content)
        if sending is None:
            sending = asyncio.create_task(self._send(order))
            self._remember(order.order_id, content, sending)
        try:
            await asyncio.wait_for(asyncio.shield(sending), ACKNOWLEDGED_WITHIN_S)
        except TimeoutError:
            raise AwayError(
                f"Kafka did not acknowledge within {ACKNOWLEDGED_WITHIN_S:.0f} s; repeat with the same Idempotency-Key"
            ) from None
        except Exception as failed:
            self._recent.pop(order.order_id, None)
            raise AwayError(f"Kafka did not take the order ({type(failed).__name__}); repeat it") from failed

    def _known(self, order_id: str, content: str) -> "asyncio.Task[None] | asyncio.Future[None] | None":
        if recent := self._recent.get(order_id):
            if recent[0] != content:
                raise ReusedKeyError
            return recent[1]
        try:
            status = self._board[order_id]
        except KeyError:
            return None
        if status.status is Status.REJECTED:
            return None
        if status.fingerprint != content:
            raise ReusedKeyError
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        done.set_result(None)
        return done

    def _remember(self, order_id: str, content: str, sending: "asyncio.Task[None]") -> None:
        self._recent[order_id] = (content, sending)
        while len(self._recent) > RECENT:
            self._recent.popitem(last=False)

    async def _send(self, order: OrderPlaced) -> None:
        at = str(now_us()).encode()
        headers = [(INTENDED_AT_HEADER, at), (PLACED_AT_HEADER, at)]
        producer = self._service.app.producer
        key = order.order_id.encode()
        await producer.send_and_wait(self._topic, key, encode(order), None, None, headers)
