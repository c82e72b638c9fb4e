"""Sends orders by POST /orders to the Order service. Each request starts when it is due, while others wait for answers.

A slow answer delays no other request, unless all `CONNECTIONS` are in use. Then a request waits for a connection. Its
header X-Request-Start has the intended time, so this wait counts as latency.
"""

import time
from typing import Final

import gevent
import msgspec
from gevent.pool import Group
from geventhttpclient import HTTPClient

from contracts.events import INTENDED_AT_HEADER
from loadgen.drivers.sender import GeneratorError, Pause, Sender, Settled
from loadgen.orders import Record

CONNECTIONS: Final = 200
REQUEST_TIMEOUT_S: Final = 20.0
"""Longest wait for an answer. A request without an answer is repeated with the same Idempotency-Key."""
REPEAT_S: Final = 0.5
PLACED, UNAUTHORISED, BUSY = 202, 401, 503
REFUSED: Final = (400, 413, 422)
"""HTTP status codes of an invalid order, which is not repeated."""


class HttpSender(Sender):
    """Sends orders to one address."""

    def __init__(self, url: str, token: str, *, pause: Pause, settled: Settled) -> None:
        super().__init__(pause, settled)
        self._url = url
        self._headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
        self._client = HTTPClient.from_url(
            url, concurrency=CONNECTIONS, connection_timeout=REQUEST_TIMEOUT_S, network_timeout=REQUEST_TIMEOUT_S
        )
        self._requests = Group()

    def connect(self, partitions: int, deadline_s: float) -> None:
        """Wait until the service accepts orders. partitions: unused. Raises GeneratorError."""
        deadline = time.monotonic() + deadline_s
        while True:
            code, text = self._request("GET", "/orders/none", None, {})
            if code == UNAUTHORISED:
                raise GeneratorError(f"{self._url}: {text}; set TAILPACK_ORDER_TOKEN_FILE")
            if 0 < code < BUSY:
                return
            if time.monotonic() > deadline:
                raise GeneratorError(
                    f"no Order service accepts orders at {self._url} ({text}): start it or fix TAILPACK_ORDER_URL "
                    f"(waited {deadline_s:g} s)"
                )
            self._pause(0.2)

    def send(self, record: Record) -> None:
        """Start to send one order. Return at once."""
        self.produced += 1
        self._requests.spawn(self._place, record, time.perf_counter())

    def poll(self) -> None:
        """Do nothing, because answers are processed on arrival."""

    def drain(self, deadline_s: float) -> None:
        """Wait for outstanding answers. An order without an answer then is dropped and counts as failed."""
        self._requests.join(deadline_s)
        unanswered = len(self._requests)
        self._requests.kill()
        self._client.close()
        if unanswered:
            self.failed += unanswered
            self.first_error = self.first_error or f"no answer within {deadline_s:g} s of the last send"

    def _place(self, record: Record, sent_s: float) -> None:
        body = _without_id(record.value)
        intended_us = int(dict(record.headers)[INTENDED_AT_HEADER])
        headers = {
            "Idempotency-Key": record.key.decode(),
            "X-Request-Start": f"t={intended_us // 1_000_000}.{intended_us % 1_000_000:06d}",
        }
        while True:
            code, text = self._request("POST", "/orders", body, headers)
            if code == PLACED or code in REFUSED or 0 < code < 500:
                break
            gevent.sleep(REPEAT_S)
        error = None
        if code == PLACED:
            self.acknowledged += 1
        else:
            error = f"{self._url} answers {code}: {text}"
            self.refused += code in REFUSED
            self.failed += code not in REFUSED
            self.first_error = self.first_error or (None if code in REFUSED else error)
        self._on_settled(len(body), time.perf_counter() - sent_s, error)

    def _request(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> tuple[int, str]:
        try:
            answer = self._client.request(method, path, body=body or b"", headers={**self._headers, **headers})
            return answer.status_code, answer.read().decode(errors="replace")[:200]
        except (OSError, gevent.Timeout, ValueError) as error:
            return 0, str(error)


def _without_id(value: bytes) -> bytes:
    try:
        fields = msgspec.json.decode(value, type=dict[str, msgspec.Raw])
    except msgspec.DecodeError:
        return value
    return msgspec.json.encode({name: text for name, text in fields.items() if name not in ("order_id", "v")})
