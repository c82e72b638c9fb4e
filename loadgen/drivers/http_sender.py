"""The way by HTTP: POST /orders of the Order service, as many at a time as are due.

A slow answer delays no other request: connections are opened as they are needed, up to `CONNECTIONS`; what waits for
one was begun on time all the same, by its X-Request-Start.
"""

import time
from typing import Final

import gevent
import msgspec
from gevent.pool import Group
from geventhttpclient import HTTPClient

from contracts.events import INTENDED_AT_HEADER
from loadgen.drivers.sender import GeneratorError, OnSettled, Pause, Sender
from loadgen.orders import Record

CONNECTIONS: Final = 200
REQUEST_TIMEOUT_S: Final = 20.0
"""How long one answer is awaited; a request without one is repeated with the same Idempotency-Key."""
REPEAT_S: Final = 0.5
PLACED, UNAUTHORISED, BUSY = 202, 401, 503
REFUSED: Final = (400, 413, 422)
"""The order itself is wrong; to repeat it would not help."""


class HttpSender(Sender):
    """Sends orders to one address."""

    def __init__(self, url: str, token: str, *, pause: Pause, settled: OnSettled) -> None:
        super().__init__(pause, settled)
        self._url = url
        self._headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
        self._client = HTTPClient.from_url(
            url, concurrency=CONNECTIONS, connection_timeout=REQUEST_TIMEOUT_S, network_timeout=REQUEST_TIMEOUT_S
        )
        self._under_way = Group()

    def connect(self, partitions: int, deadline_s: float) -> None:
        """Wait until the service takes orders. partitions: its own matter. Raises GeneratorError."""
        deadline = time.monotonic() + deadline_s
        while True:
            code, said = self._ask("GET", "/orders/none", None, {})
            if code == UNAUTHORISED:
                raise GeneratorError(f"{self._url}: {said}: tell TAILPACK_ORDER_TOKEN_FILE")
            if 0 < code < BUSY:
                return
            if time.monotonic() > deadline:
                raise GeneratorError(
                    f"no Order service takes orders at {self._url} ({said}): start it or mend TAILPACK_ORDER_URL "
                    f"(waited {deadline_s:g} s)"
                )
            self._pause(0.2)

    def send(self, record: Record) -> None:
        """Begin to send one order; returns at once."""
        self.produced += 1
        self._under_way.spawn(self._place, record, time.perf_counter())

    def poll(self) -> None:
        """Nothing: answers are taken in as they come."""

    def drain(self, deadline_s: float) -> None:
        """Wait for the answers that are due; an order without one by the deadline is given up and counted as failed."""
        self._under_way.join(deadline_s)
        given_up = len(self._under_way)
        self._under_way.kill()
        self._client.close()
        if given_up:
            self.failed += given_up
            self.first_error = self.first_error or f"no answer within {deadline_s:g} s of the last send"

    def _place(self, record: Record, sent_s: float) -> None:
        body = _without_id(record.value)
        intended_us = int(dict(record.headers)[INTENDED_AT_HEADER])
        headers = {
            "Idempotency-Key": record.key.decode(),
            "X-Request-Start": f"t={intended_us // 1_000_000}.{intended_us % 1_000_000:06d}",
        }
        while True:
            code, said = self._ask("POST", "/orders", body, headers)
            if code == PLACED or code in REFUSED or 0 < code < 500:
                break
            gevent.sleep(REPEAT_S)
        wrong = None
        if code == PLACED:
            self.acknowledged += 1
        else:
            wrong = f"{self._url} answers {code}: {said}"
            self.refused += code in REFUSED
            self.failed += code not in REFUSED
            self.first_error = self.first_error or (None if code in REFUSED else wrong)
        self._settled(len(body), time.perf_counter() - sent_s, wrong)

    def _ask(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> tuple[int, str]:
        """Return status code and what was said with it; 0 where nobody answers."""
        try:
            answer = self._client.request(method, path, body=body or b"", headers={**self._headers, **headers})
            return answer.status_code, answer.read().decode(errors="replace")[:200]
        except (OSError, gevent.Timeout, ValueError) as error:
            return 0, str(error)


def _without_id(value: bytes) -> bytes:
    """Return an order as a customer would send it; what cannot be read stays as it is."""
    try:
        fields = msgspec.json.decode(value, type=dict[str, msgspec.Raw])
    except msgspec.DecodeError:
        return value
    return msgspec.json.encode({name: text for name, text in fields.items() if name not in ("order_id", "v")})
