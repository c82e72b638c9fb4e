"""POST /orders and GET /orders/{id}: an order goes on the topic once per idempotency key."""

import asyncio
import uuid
from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

import msgspec
from aiohttp import web

from contracts.catalogue import MAX_ORDER_BYTES
from contracts.clock import now_us
from contracts.events import INTENDED_AT_HEADER, PLACED_AT_HEADER, OrderPlaced
from contracts.topics import Topic
from services.common.records import effect_id, encode
from services.common.service import Service
from services.order.domain import fingerprint, problems_in
from services.order.status import Status, StatusBoard

MAX_KEY_LENGTH: Final = 200
ACKNOWLEDGED_WITHIN_S: Final = 5.0
RECENT: Final = 10_000
"""Placed orders remembered here, until the table knows them from the topic."""


class OrdersApi:
    """The handlers. What they tell is JSON, errors included: {"reasons": [...]}."""

    def __init__(self, service: Service, board: StatusBoard, token_key: str) -> None:
        self._service = service
        self._board = board
        self._placer = Placer(service, board, token_key)

    def routes(self) -> Sequence[web.AbstractRouteDef]:
        """Return what the service's HTTP interface adds."""
        return (web.post("/orders", self.post), web.get("/orders/{order_id}", self.get))

    async def get(self, request: web.Request) -> web.Response:
        """Return the order's status; 404 for an unknown order, 503 while the table recovers."""
        try:
            self._require_table()
            status = self._board[request.match_info["order_id"]]
        except _RefusalError as refusal:
            return refusal.response()
        except (KeyError, UnicodeEncodeError):
            return _RefusalError(404, "no such order").response()
        told = msgspec.to_builtins(status)
        told.pop("fingerprint", None)
        return web.json_response(told)

    async def post(self, request: web.Request) -> web.Response:
        """Place an order: 202 once the broker has it, with its id and where to ask for its status."""
        try:
            self._require_table()
            key = request.headers.get("Idempotency-Key")
            order = self._order(await _body(request), key)
            await self._placer.place(order)
        except _RefusalError as refusal:
            return refusal.response()
        location = f"/orders/{order.order_id}"
        body = {"order_id": order.order_id, "status_url": location}
        return web.json_response(body, status=202, headers={"Location": location})

    def _order(self, body: bytes, key: str | None) -> OrderPlaced:
        """Return the order in a request's body. Raises _RefusalError with every reason."""
        reasons = []
        if key is not None and not 1 <= len(key) <= MAX_KEY_LENGTH:
            reasons.append(f"Idempotency-Key: must have 1 to {MAX_KEY_LENGTH} characters, not {len(key)}")
        try:
            fields = msgspec.json.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError) as wrong:
            raise _RefusalError(400, f"not JSON: {wrong}") from wrong
        if not isinstance(fields, dict):
            raise _RefusalError(422, "the body is not a JSON object")
        if "order_id" in fields:
            reasons.append("order_id: is given by the service; send an Idempotency-Key to be able to repeat")
        fields["order_id"] = self._placer.order_id(key)
        if reasons := [*reasons, *problems_in(fields)]:
            raise _RefusalError(422, *reasons)
        return msgspec.convert(fields, OrderPlaced)

    def _require_table(self) -> None:
        """Raise _RefusalError while the table cannot be trusted."""
        app = self._service.app
        if not app.started or not app.tables.actives_ready or app.rebalancing:
            raise _RefusalError(503, "the table of orders is being recovered; ask again in a second")


class _RefusalError(Exception):
    """An answer that is not the one asked for: status code and reasons."""

    def __init__(self, code: int, *reasons: str) -> None:
        self.code = code
        self.reasons = reasons
        super().__init__(*reasons)

    def response(self) -> web.Response:
        """Return it as JSON."""
        headers = {"Retry-After": "1"} if self.code == 503 else None
        return web.json_response({"reasons": self.reasons}, status=self.code, headers=headers)


async def _body(request: web.Request) -> bytes:
    """Return the body. Raises _RefusalError for one that is too large, without reading it where its length is told."""
    too_large = _RefusalError(413, f"an order has at most {MAX_ORDER_BYTES} bytes")
    if (request.content_length or 0) > MAX_ORDER_BYTES:
        raise too_large
    try:
        body = await request.read()
    except web.HTTPRequestEntityTooLarge:
        raise too_large from None
    if len(body) > MAX_ORDER_BYTES:
        raise too_large
    return body


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

        Raises _RefusalError when its id stands for another order, or when the broker does not acknowledge in time: the
        order may arrive yet, and a repeat with the same key is safe.
        """
        content = fingerprint(order, self._token_key)
        sending = self._known(order.order_id, content)
        if sending is None:
            sending = asyncio.create_task(self._send(order))
            self._remember(order.order_id, content, sending)
        try:
            await asyncio.wait_for(asyncio.shield(sending), ACKNOWLEDGED_WITHIN_S)
        except TimeoutError:
            late = f"Kafka did not acknowledge within {ACKNOWLEDGED_WITHIN_S:.0f} s"
            raise _RefusalError(503, f"{late}; repeat with the same Idempotency-Key") from None
        except Exception as failed:
            self._recent.pop(order.order_id, None)
            raise _RefusalError(503, f"Kafka did not take the order ({type(failed).__name__}); repeat it") from failed

    def _known(self, order_id: str, content: str) -> "asyncio.Task[None] | asyncio.Future[None] | None":
        if recent := self._recent.get(order_id):
            if recent[0] != content:
                raise _RefusalError(422, "Idempotency-Key: was used for another order; take a new one")
            return recent[1]
        try:
            status = self._board[order_id]
        except KeyError:
            return None
        if status.status is Status.REJECTED:
            return None
        if status.fingerprint != content:
            raise _RefusalError(422, "Idempotency-Key: was used for another order; take a new one")
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
