"""POST /orders and GET /orders/{id}. An order is written once for each Idempotency-Key of the last half hour."""

import asyncio
import hmac
import re
import uuid
from collections import OrderedDict
from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

import msgspec
from aiohttp import web
from aiohttp.helpers import is_ip_address

from contracts.clock import now_us
from contracts.events import INTENDED_AT_HEADER, MAX_ORDER_BYTES, PLACED_AT_HEADER, OrderPlaced
from contracts.topics import Topic
from contracts.validation import DECODE_ERRORS
from services.common import traces
from services.common.records import effect_id, encode, mask_cards
from services.common.service import Service
from services.order.domain import fingerprint, problems_in
from services.order.status import StatusBoard

MAX_KEY_LENGTH: Final = 200
CLUSTER_DOMAINS: Final = (".localhost", ".local", ".internal", ".svc")  # no public site can have such a name
ACKNOWLEDGEMENT_DEADLINE_S: Final = 5.0
MAX_REQUEST_AGE_US: Final = 60_000_000
_REQUEST_START: Final = re.compile(r"t=(\d{1,12}(?:\.\d{1,6})?)")
MAX_RECENT_ORDERS: Final = 10_000  # placed orders remembered until the board reads them from the topic


class OrdersApi:
    """The HTTP handlers. All answers are JSON. An error is {"reasons": [...]}."""

    def __init__(self, service: Service, board: StatusBoard, token_key: str, api_token: str = "") -> None:
        self._service, self._board, self._token_key = service, board, token_key
        self._api_token = api_token.encode()
        self._topic = service.topic_name(Topic.ORDERS_PLACED)
        self._recent: OrderedDict[str, tuple[str, asyncio.Task[None]]] = OrderedDict()
        """Order id → fingerprint of the order, and the task that sends it (pending or done)."""

    def routes(self) -> Sequence[web.AbstractRouteDef]:
        """Return the routes that Order adds to the service's HTTP interface."""
        return (web.post("/orders", self.post), web.get("/orders/{order_id}", self.get))

    async def get(self, request: web.Request) -> web.Response:
        """Return the order's status; 401 without the token, 404 for an unknown order, 503 while the board is read."""
        try:
            self._admit(request)
            status = self._board[request.match_info["order_id"]]
        except _RefusalError as refusal:
            return refusal.response()
        except (KeyError, UnicodeEncodeError):
            return _RefusalError(404, "no such order").response()
        fields = {name: value for name, value in msgspec.to_builtins(status).items() if value not in (None, [])}
        return web.json_response({name: fields[name] for name in fields if name not in {"fingerprint", "v"}})

    async def post(self, request: web.Request) -> web.Response:
        """Place an order. Answers 202 when the broker has it, with its id and the URL of its status."""
        try:
            self._admit(request)
            key = request.headers.get("Idempotency-Key")
            if request.content_type != "application/json":
                raise _RefusalError(415, "Content-Type: must be application/json")
            order = _order_in(await request.read(), key)
            await self.place(order, _intended_us(request.headers.get("X-Request-Start", ""), now_us()))
        except web.HTTPRequestEntityTooLarge:
            return _RefusalError(413, f"an order has at most {MAX_ORDER_BYTES} bytes").response()
        except _RefusalError as refusal:
            return refusal.response()
        location = f"/orders/{order.order_id}"
        body = {"order_id": order.order_id, "status_url": location}
        return web.json_response(body, status=202, headers={"Location": location})

    async def place(self, order: OrderPlaced, intended_us: int) -> None:
        """Write the order and wait until the broker has it. Return at once if it was placed before.

        intended_us: time at which the customer sent the order, µs since the epoch. Latencies count from it.
        Raises _RefusalError if its id belongs to another order, or if the broker does not acknowledge in time. In the
        second case the order may still arrive, and a repeat with the same key is safe.
        """
        content = fingerprint(order, self._token_key)
        recent = self._recent.get(order.order_id)
        is_repeat = recent[0] == content if recent else self._board.is_repeat(order.order_id, content, now_us())
        if is_repeat is False:
            raise _RefusalError(422, "Idempotency-Key: was used for another order; use a new one")
        if is_repeat and recent is None:
            return
        sending = recent[1] if recent else self._begin(order, content, intended_us)
        try:
            async with asyncio.timeout(ACKNOWLEDGEMENT_DEADLINE_S):
                await asyncio.shield(sending)
        except TimeoutError:
            timeout = f"Kafka did not acknowledge within {ACKNOWLEDGEMENT_DEADLINE_S:.0f} s"
            raise _RefusalError(503, f"{timeout}; repeat with the same Idempotency-Key") from None
        except Exception as error:
            self._recent.pop(order.order_id, None)
            raise _RefusalError(503, f"Kafka did not accept the order ({type(error).__name__}); repeat it") from error

    def _begin(self, order: OrderPlaced, content: str, intended_us: int) -> "asyncio.Task[None]":
        sending = asyncio.create_task(self._send(order, intended_us))
        self._recent[order.order_id] = (content, sending)
        while len(self._recent) > MAX_RECENT_ORDERS:
            self._recent.popitem(last=False)
        return sending

    async def _send(self, order: OrderPlaced, intended_us: int) -> None:
        at = str(now_us()).encode()
        producer = self._service.app.producer
        key = order.order_id.encode()
        with traces.begin("place order"):
            headers = [(INTENDED_AT_HEADER, b"%d" % intended_us), (PLACED_AT_HEADER, at), *(traces.headers() or ())]
            await producer.send_and_wait(self._topic, key, encode(order), None, None, headers)

    def _admit(self, request: web.Request) -> None:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        sent = token.strip().encode(errors="surrogateescape") if scheme.lower() == "bearer" else b""
        if self._api_token and not hmac.compare_digest(sent, self._api_token):
            raise _RefusalError(401, "Authorization: must be Bearer and the token of this service")
        self._require_own_page(request)
        if self._service.app.rebalancing or not self._service.stage.may_run.is_set():
            raise _RefusalError(503, "the status of orders is being read back; try again in a second")

    def _require_own_page(self, request: web.Request) -> None:
        """Raise _RefusalError for what a browser sends from a page of another site.

        Without a token, a name with a dot may be any site's that resolves to this address.
        """
        try:
            host = urlsplit(f"//{request.host}").hostname or ""
            is_own = not request.headers.get("Origin") or urlsplit(request.headers["Origin"]).netloc == request.host
        except ValueError:
            raise _RefusalError(400, "Host or Origin: is not valid") from None
        if not is_own:
            raise _RefusalError(403, "Origin: other sites are refused")
        if not (self._api_token or is_ip_address(host) or "." not in host or host.endswith(CLUSTER_DOMAINS)):
            raise _RefusalError(403, "Host: must be an address or a local name unless a token is configured")


class _RefusalError(Exception):
    """An error answer: status code and reasons."""

    def __init__(self, code: int, *reasons: str) -> None:
        self.code = code
        self.reasons = tuple(map(mask_cards, reasons))
        super().__init__(*reasons)

    def response(self) -> web.Response:
        """Return the answer as JSON."""
        headers = {503: {"Retry-After": "1"}, 401: {"WWW-Authenticate": "Bearer"}}.get(self.code)
        return web.json_response({"reasons": self.reasons}, status=self.code, headers=headers)


def _intended_us(request_start: str, at_us: int) -> int:
    """Return the start time of a request from the header that proxies and load generators set: `t=` and seconds.

    Returns `at_us` if the header is invalid, in the future, or more than a minute old: a client must not set any time.
    """
    match = _REQUEST_START.fullmatch(request_start)
    start_us = round(float(match[1]) * 1e6) if match else at_us
    return start_us if at_us - MAX_REQUEST_AGE_US <= start_us <= at_us else at_us


def _order_in(body: bytes, key: str | None) -> OrderPlaced:
    """Return the order in a request's body. Raises _RefusalError with every reason."""
    reasons = []
    if key is not None and not (1 <= len(key) <= MAX_KEY_LENGTH and key.isprintable()):
        raise _RefusalError(422, f"Idempotency-Key: must have 1 to {MAX_KEY_LENGTH} printable characters of UTF-8")
    try:
        fields = msgspec.json.decode(body)
    except DECODE_ERRORS as error:
        raise _RefusalError(400, f"not JSON: {error}") from error
    if not isinstance(fields, dict):
        raise _RefusalError(422, "the body is not a JSON object")
    if "order_id" in fields:
        reasons.append("order_id: is assigned by the service; send an Idempotency-Key to make repeats safe")
    fields["order_id"] = str(uuid.uuid4()) if key is None else effect_id(key, "idempotency-key")
    if reasons := [*reasons, *problems_in(fields)]:
        raise _RefusalError(422, *reasons)
    return msgspec.convert(fields, OrderPlaced)
