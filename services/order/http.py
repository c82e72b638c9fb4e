"""POST /orders and GET /orders/{id}."""

from collections.abc import Sequence

import msgspec
from aiohttp import web

from contracts.catalogue import MAX_ORDER_BYTES
from contracts.events import OrderPlaced
from services.common.service import Service
from services.order.placing import AwayError, Placer, ReusedKeyError
from services.order.settings import OrderSettings
from services.order.status import StatusBoard
from services.order.validation import problems_in

MAX_KEY_LENGTH = 200


class OrdersApi:
    """The handlers. What they tell is JSON, errors included: {"reasons": [...]}."""

    def __init__(self, service: Service, board: StatusBoard, settings: OrderSettings) -> None:
        self._service = service
        self._board = board
        self._placer = Placer(service, board, settings.card_token_key)

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
            await self._place(order)
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

    async def _place(self, order: OrderPlaced) -> None:
        try:
            await self._placer.place(order)
        except ReusedKeyError as reused:
            raise _RefusalError(422, "Idempotency-Key: was used for another order; take a new one") from reused
        except AwayError as away:
            raise _RefusalError(503, str(away)) from away

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
