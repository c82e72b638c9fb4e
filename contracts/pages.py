"""HTTP pages of a process. Separate threads serve them, so they answer while the event loop is blocked."""

import errno
import re
import socket
import socketserver
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from http.server import BaseHTTPRequestHandler
from typing import Any, Final
from urllib.parse import unquote

import msgspec

from contracts.clock import monotonic_s

REQUEST_DEADLINE_S: Final = 10.0
"""Longest time that a connection may stay open, so that no client occupies a thread for ever."""
MAX_CONNECTIONS: Final = 64
"""Most open connections. A further connection closes the oldest, so that a new client (a health probe) is answered."""
MAX_STREAMS: Final = 16  # most answers that are streamed at the same time; a further one is refused with 503
STREAM_WRITE_S: Final = 2.0  # longest time to write a part of a stream; a slower client is disconnected
STREAM_BUFFER: Final = 65_536  # bytes that the system holds for a client that does not read
MAX_BODY: Final = 10_000  # bytes in the body of a POST request
MAX_SHOWN_PATH: Final = 80  # characters of an unknown path in the answer
POLL_S: Final = 0.1  # longest wait of `close` for the listening thread, s


class Answer(msgspec.Struct, frozen=True):
    """One HTTP answer."""

    body: bytes
    status: str = "200 OK"
    content_type: str = "application/json"
    stream: Callable[[str], Iterator[bytes]] | None = None
    """Yields the parts of a streamed answer, which follow `body`. Its argument is the header Last-Event-ID, or ""."""


Respond = Callable[[str, str], Answer]
"""Returns the answer for a path and a query. It runs in threads of the web server and must return within seconds."""


Act = Callable[[str, Mapping[str, str], bytes], Answer]
"""Returns the answer for path, headers (as `Content-Type`) and body of a POST request, in threads as `Respond`."""


class PortTakenError(Exception):
    """The pages cannot be served on the configured port."""


def http_error(status: str, text: str) -> Answer:
    """Return an error as JSON: {"error": …}."""
    return Answer(msgspec.json.encode({"error": text}), status)


def not_found(path: str, pages: Any) -> Answer:
    """Return the answer for an unknown path, with the known `pages`."""
    return http_error("404 Not Found", f"no page {path[:MAX_SHOWN_PATH]}; known pages: {', '.join(pages)}")


class _Handler(BaseHTTPRequestHandler):
    """Logs no requests."""

    timeout = REQUEST_DEADLINE_S

    def __init__(self, respond: Respond, act: Act | None, request: Any, client_address: Any, server: Any) -> None:
        self._respond, self._act = respond, act
        self._server: WebServer = server
        super().__init__(request, client_address, server)

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        if self.command in ("GET", "HEAD"):
            answer = self._respond(unquote(path), query)
        elif self.command == "POST" and self._act is not None:
            answer = self._post(self._act, unquote(path))
        else:
            answer = http_error("405 Method Not Allowed", f"{self.command} is not supported; all pages are read-only")
        if answer.stream is not None and self.command == "GET":
            if len(self._server.streams) < MAX_STREAMS:
                self._send_stream(answer, answer.stream)
                return
            answer = http_error("503 Service Unavailable", f"{MAX_STREAMS} streams are open; close a page")
        self._send_head(answer, {"Content-Length": str(len(answer.body))})
        if self.command != "HEAD":
            self.wfile.write(answer.body)

    def _post(self, act: Act, path: str) -> Answer:
        length = self.headers.get("Content-Length", "")
        if not re.fullmatch("[0-9]{1,9}", length) or int(length) > MAX_BODY:
            return http_error("413 Content Too Large", f"Content-Length: must be at most {MAX_BODY}")
        headers = {name.title(): value for name, value in self.headers.items()}
        return act(path, headers, self.rfile.read(int(length)))

    def _send_head(self, answer: Answer, headers: dict[str, str]) -> None:
        code, _, phrase = answer.status.partition(" ")
        self.send_response(int(code), phrase)
        for name, value in {"Content-Type": answer.content_type, **headers}.items():
            self.send_header(name, value)
        self.end_headers()

    def finish(self) -> None:
        """End the answer."""
        if self._server is not None:
            self._server.streams.discard(self.connection)
        super().finish()

    def _send_stream(self, answer: Answer, stream: Callable[[str], Iterator[bytes]]) -> None:
        """Send the parts until the client or the server closes the connection, or the client reads too slowly."""
        self.connection.settimeout(STREAM_WRITE_S)
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, STREAM_BUFFER)
        self.close_connection = True
        self._server.streams.add(self.connection)
        with suppress(OSError):
            self._send_head(answer, {"Cache-Control": "no-store", "Connection": "close"})
            self.wfile.write(answer.body)
            for part in stream(self.headers.get("Last-Event-ID", "")):
                for begin in range(0, len(part), STREAM_BUFFER):  # each has the whole time
                    self.wfile.write(part[begin : begin + STREAM_BUFFER])

    do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_GET  # noqa: N815

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the name is the base class's
        """Log nothing."""


class WebServer(socketserver.ThreadingTCPServer):
    """Serves each connection in a daemon thread. Python's HTTPServer would look up the host's name at the start."""

    allow_reuse_address = daemon_threads = True

    def __init__(self, respond: Respond, port: int, host: str = "127.0.0.1", act: Act | None = None) -> None:
        """Bind the port; 0 takes any free port. act: answers POST; None: refused. Raises PortTakenError."""
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            super().__init__((host, port), partial(_Handler, respond, act))
        except OSError as why:
            taken = f"port {port} is taken; set TAILPACK_HTTP_PORT to a free one"
            other = f"cannot listen on {host}:{port} ({why.strerror}); set TAILPACK_HTTP_HOST and TAILPACK_HTTP_PORT"
            raise PortTakenError(taken if why.errno == errno.EADDRINUSE else other) from why
        self.port = self.server_address[1]
        self._opened_s: dict[Any, float] = {}
        """Open connection → monotonic time at which it was opened, oldest first."""
        self.streams: set[Any] = set()
        """Connections with a streamed answer."""
        self._thread = threading.Thread(target=self.serve_forever, args=(POLL_S,), name="web", daemon=True)
        self.start = self._thread.start
        """Starts to answer requests."""

    def close(self) -> None:
        """Stop answering and free the port."""
        if self._thread.is_alive():
            self.shutdown()
        self.server_close()
        for request in [*self.streams]:
            with suppress(OSError):
                request.shutdown(socket.SHUT_RDWR)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection in its own thread."""
        self._opened_s[request] = monotonic_s()
        super().process_request(request, client_address)

    def service_actions(self) -> None:
        """Close connections that are open for too long, and the oldest ones if there are too many."""
        opened = [(request, at_s) for request, at_s in self._opened_s.items() if request.fileno() >= 0]
        self._opened_s = {request: at_s for request, at_s in opened if request not in self.streams}
        surplus = len(self._opened_s) - MAX_CONNECTIONS
        for number, (request, at_s) in enumerate(self._opened_s.items()):
            if number < surplus or monotonic_s() - at_s > REQUEST_DEADLINE_S:
                with suppress(OSError):
                    request.shutdown(socket.SHUT_RDWR)  # its thread ends

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print the failure, unless the client closed the connection."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)
