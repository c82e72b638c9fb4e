"""Health, plan, decisions and metrics over HTTP, from a thread of their own. Read only."""

import errno
import socketserver
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import parse_qs, unquote

import msgspec
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

JSON: Final = "application/json"
MAX_DECISIONS: Final = 100


class Answer(msgspec.Struct, frozen=True):
    """One HTTP answer."""

    body: bytes
    status: str = "200 OK"
    content_type: str = JSON


class PortTakenError(Exception):
    """The pages cannot be served on the port that was asked for."""


@dataclass(frozen=True, slots=True)
class Source:
    """What the pages show. Each function returns plain data, is called from the web thread, and must not wait."""

    last_tick: Callable[[], tuple[int, float]]
    """Ticks taken, and the age of the last one in seconds."""
    plan: Callable[[], Mapping[str, Any]]
    decisions: Callable[[int], list[Any]]
    """The newest so many, newest first."""
    registry: CollectorRegistry
    tick_limit_s: float
    """Above that age of the last tick the autoscaler is unwell."""
    troubles: Callable[[], Mapping[str, str]] = dict
    """What is in trouble → why."""
    unwell: Callable[[], str] = str
    """What of that keeps the autoscaler from its work; empty: nothing does."""
    unready: Callable[[], str] = str
    """What keeps it from it that a new start would not mend; empty: nothing does."""
    targets: Callable[[], list[str]] = list
    """HOST:PORT of the replicas' metrics."""


def health(source: Source, *, of_life: bool = False) -> Answer:
    """200 while the last tick is recent and the policy decides: a controller that does neither protects nobody.

    One that copes although something is in trouble is `degraded`, and says what: to start it anew mends nothing.
    of_life: nor is one unwell then that cannot lead for reasons outside of it.
    """
    ticks, age_s = source.last_tick()
    troubles, why = dict(source.troubles()), source.unwell()
    if not of_life:
        why = why or source.unready()
    if ticks == 0:
        why = "no tick yet"
    elif age_s > source.tick_limit_s:
        why = "the last tick is too long ago"
    body: dict[str, Any] = {
        "status": why or ("degraded" if troubles else "ok"),
        "ticks": ticks,
        "last_tick_age_s": round(age_s, 3),
        "limit_s": source.tick_limit_s,
    }
    body |= {"troubles": troubles} if troubles else {}
    return Answer(msgspec.json.encode(body), "503 Service Unavailable" if why else "200 OK")


def decisions(source: Source, query: str) -> Answer:
    """The newest decisions, newest first; ?limit=1 … 100."""
    text = parse_qs(query).get("limit", [str(MAX_DECISIONS)])[-1]
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= MAX_DECISIONS:
        return _error("400 Bad Request", f"limit must be a whole number from 1 to {MAX_DECISIONS}, not {text[:20]!r}")
    return Answer(msgspec.json.encode(source.decisions(int(text))))


PAGES: Final[dict[str, tuple[str, Callable[[Source, str], Answer]]]] = {
    "/": (
        "this list",
        lambda source, query: Answer(msgspec.json.encode({path: text for path, (text, _) in PAGES.items()})),
    ),
    "/healthz": (
        "200 while ticks are recent and the policy decides, else 503; what is wrong",
        lambda source, query: health(source),
    ),
    "/livez": (
        "the same, but 200 where a new start would mend nothing",
        lambda source, query: health(source, of_life=True),
    ),
    "/plan": ("plan in force and plan wanted", lambda source, query: Answer(msgspec.json.encode(source.plan()))),
    "/decisions": ("the last decisions, newest first (?limit=)", decisions),
    "/targets": (
        "where the replicas' metrics are, as Prometheus' http_sd_configs wants it",
        lambda source, query: Answer(msgspec.json.encode([{"targets": source.targets(), "labels": {}}])),
    ),
    "/metrics": (
        "Prometheus metrics",
        lambda source, query: Answer(generate_latest(source.registry), content_type=CONTENT_TYPE_LATEST),
    ),
}


def respond(source: Source, method: str, path: str, query: str) -> Answer:
    """Return the answer to one request; problems are JSON {"error": …} with a fitting status."""
    if method not in ("GET", "HEAD"):
        return _error("405 Method Not Allowed", f"{method} is not possible here; everything is read only")
    if path not in PAGES:
        return _error("404 Not Found", f"there is no {path[:80]}; there are {', '.join(PAGES)}")
    return PAGES[path][1](source, query)


def _error(status: str, text: str) -> Answer:
    return Answer(msgspec.json.encode({"error": text}), status)


class _Handler(BaseHTTPRequestHandler):
    """No line for each request, and no reader that holds a thread for ever."""

    timeout = 10

    def __init__(self, source: Source, *connection: Any) -> None:
        self._source = source
        super().__init__(*connection)

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        answer = respond(self._source, self.command, unquote(path), query)
        code, _, phrase = answer.status.partition(" ")
        self.send_response(int(code), phrase)
        self.send_header("Content-Type", answer.content_type)
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)

    do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_GET  # noqa: N815

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the name is the base class's
        """Say nothing."""


class ThreadedServer(ThreadingHTTPServer):
    """A thread for each connection; quiet about clients that leave."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print what went wrong, but for a client that has given up: nobody is left to be told."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)

    def server_bind(self) -> None:
        """Bind without the name look-up of HTTPServer, which may take seconds."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = self.server_address[:2]  # type: ignore[assignment]


class WebServer:
    """Serves in daemon threads until closed."""

    def __init__(self, source: Source, port: int, host: str = "127.0.0.1") -> None:
        """Bind. Raises PortTakenError."""
        try:
            self._server = ThreadedServer((host, port), partial(_Handler, source))
        except OSError as refused:
            if refused.errno == errno.EADDRINUSE:
                raise PortTakenError(f"port {port} is taken; set TAILPACK_HTTP_PORT to a free one") from refused
            raise PortTakenError(
                f"cannot listen on {host}:{port} ({refused.strerror}); set TAILPACK_HTTP_HOST and TAILPACK_HTTP_PORT"
            ) from refused
        self.port = self._server.server_port
        self._thread = threading.Thread(target=self._server.serve_forever, name="web", daemon=True)

    def start(self) -> None:
        """Begin to answer."""
        self._thread.start()

    def close(self) -> None:
        """Stop answering and free the port."""
        if self._thread.is_alive():
            self._server.shutdown()
        self._server.server_close()
