"""The pages of a replica: its health and its metrics over HTTP."""

import asyncio
import socket
from concurrent.futures import CancelledError
from contextlib import suppress
from typing import Final

import msgspec
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from contracts.pages import Answer, PortTakenError, WebServer, nowhere, refused
from services.consumer.interface import ReplicaError
from services.consumer.vitals import Vitals

ANSWER_S: Final = 5.0
"""An event loop that has not come to a page for so long does not turn."""
UNAVAILABLE: Final = "503 Service Unavailable"


class Pages:
    """`/healthz` (200, or 503 with the reasons) and `/metrics`, made by the replica's own event loop.

    For Kubernetes: `/readyz` is `/healthz` of one that is in its group, and `/livez` says that the loop turns; while
    Kafka is away no replica is well, and to start one anew would mend nothing.
    """

    def __init__(self, host: str, port: int, vitals: Vitals) -> None:
        self._host = host
        self._port = port
        self._vitals = vitals
        self._registry = CollectorRegistry()
        self._registry.register(vitals)
        self._pages = {"/healthz": self._healthz, "/readyz": self._readyz, "/livez": _alive, "/metrics": self._metrics}
        self._server: WebServer | None = None

    def start(self, brokers: str) -> str:
        """Listen, where there is a port; return HOST:PORT at which others can ask. Call it in the event loop.

        brokers: HOST:PORT,…; where all addresses are listened on, others reach the one that faces the first broker.
        Raises ReplicaError: no such port.
        """
        if not self._port:
            return ""
        loop = asyncio.get_running_loop()
        try:
            self._server = WebServer(lambda path, _: self._asked(path, loop), max(0, self._port), self._host)
        except PortTakenError as taken:
            raise ReplicaError(f"{taken}, or Options(http_port=…)") from taken
        self._server.start()
        host = facing(brokers) if self._host in ("", "0.0.0.0", "::") else self._host  # noqa: S104  what it is told
        return f"[{host}]:{self._server.port}" if ":" in host else f"{host}:{self._server.port}"

    async def stop(self) -> None:
        """Listen no more."""
        if self._server is not None:
            await asyncio.to_thread(self._server.close)

    def _asked(self, path: str, loop: asyncio.AbstractEventLoop) -> Answer:
        if path not in self._pages:
            return nowhere(path, self._pages)

        async def made() -> Answer:
            return self._pages[path]()

        answer = asyncio.run_coroutine_threadsafe(made(), loop)
        try:
            return answer.result(ANSWER_S)
        except TimeoutError:
            answer.cancel()
            return refused(UNAVAILABLE, f"the event loop has not turned for {ANSWER_S:.0f} s")
        except CancelledError:
            return refused(UNAVAILABLE, "the replica is ending")

    def _healthz(self) -> Answer:
        health = self._vitals.health()
        return Answer(msgspec.json.encode(health), "200 OK" if health.ok else UNAVAILABLE)

    def _readyz(self) -> Answer:
        if self._vitals.membership.member_id:
            return self._healthz()
        return Answer(msgspec.json.encode({"ok": False, "reasons": ["not in the group"]}), UNAVAILABLE)

    def _metrics(self) -> Answer:
        return Answer(generate_latest(self._registry), content_type=CONTENT_TYPE_LATEST)


def _alive() -> Answer:
    return Answer(msgspec.json.encode({"alive": True}))


def facing(brokers: str) -> str:
    """Return our own address on the way to the first of `brokers`; nothing is sent."""
    host, _, port = brokers.split(",", maxsplit=1)[0].rpartition(":")
    with suppress(OSError, ValueError):
        family, kind, _, _, address = socket.getaddrinfo(host.strip("[] "), int(port), type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind) as probe:
            probe.connect(address)
            return str(probe.getsockname()[0])
    return socket.gethostname()
