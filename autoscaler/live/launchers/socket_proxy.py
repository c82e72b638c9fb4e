"""Between the autoscaler and the Docker engine: containers of one group may be handled, and nothing else.

Whoever may talk to an engine is root on its host. So the engine's socket is given to `python -m
autoscaler.live.launchers.socket_proxy` alone, and the autoscaler's DOCKER_HOST names this. A container is created from
the image that the proxy was told, with what it needs and no more: whatever else is asked for is left out.
"""

import json
import os
import re
import signal
import socket
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from http.server import BaseHTTPRequestHandler
from typing import Any, Final
from urllib.parse import parse_qs, urlencode, urlsplit

from autoscaler.live.launchers.docker import GROUP, REPLICA
from autoscaler.live.settings import DockerSettings
from contracts.connection import read_settings
from contracts.pages import ThreadedServer
from contracts.settings import setting
from contracts.topics import ScaledGroup

ANSWER_S: Final = 60.0
LONGEST_BODY: Final = 1_000_000
OPEN: Final = re.compile(r"(GET|HEAD) (/v[\d.]+)?/(_ping|version)")
LIST: Final = re.compile(r"GET (/v[\d.]+)?/containers/json")
CREATE: Final = re.compile(r"POST (/v[\d.]+)?/containers/create")
ONE: Final = re.compile(
    r"(?:GET (/v[\d.]+)?/containers/(\w+)/(?:json|logs)|POST (/v[\d.]+)?/containers/(\w+)/(?:start|kill|wait|rename)"
    r"|DELETE (/v[\d.]+)?/containers/(\w+))"
)


@dataclass(frozen=True, kw_only=True)
class ProxySettings(DockerSettings, ScaledGroup):
    """Environment: TAILPACK_ENGINE_SOCKET, TAILPACK_DOCKER_IMAGE, …"""

    engine_socket: str = setting("/var/run/docker.sock")
    """The engine's socket."""
    http_host: str = setting("127.0.0.1")
    """Address of the proxy; 0.0.0.0 inside a container, in a network that it shares with the autoscaler alone."""
    http_port: int = setting(2375, least=1, most=65535)
    """Port of the proxy."""


class RefusedError(Exception):
    """What was asked for is not allowed; says what."""


class _Engine(HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("engine", timeout=ANSWER_S)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class SocketProxy:
    """Serves until closed. group: of whose containers."""

    def __init__(self, settings: ProxySettings, group: str) -> None:
        self._settings = settings
        self._group = group
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_any(self) -> None:
                try:
                    body = self.rfile.read(_length(self.headers.get("Content-Length") or "0"))
                    status, body = proxy.answer(self.command, self.path, body)
                except RefusedError as refused:
                    status, body = 403, _message(f"refused by the proxy: {refused}")
                except (OSError, HTTPException) as away:
                    status, body = 502, _message(f"the engine at {settings.engine_socket} does not answer: {away}")
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                if status == 403:
                    self.send_header("Connection", "close")  # the body of what is refused may not have been read
                self.end_headers()
                self.wfile.write(b"" if self.command == "HEAD" else body)

            do_GET = do_HEAD = do_POST = do_DELETE = do_PUT = handle_any  # noqa: N815

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                """Refusals are told to who asked."""

        self._server = ThreadedServer((settings.http_host, settings.http_port), Handler)
        self.port = self._server.server_address[1]

    def serve(self) -> None:
        """Serve until closed by another thread."""
        self._server.serve_forever(poll_interval=0.2)

    def close(self) -> None:
        """Serve no more."""
        self._server.shutdown()
        self._server.server_close()

    def answer(self, method: str, url: str, body: bytes) -> tuple[int, bytes]:
        """Return status and body of the engine's answer. Raises RefusedError, OSError and HTTPException."""
        asked = urlsplit(url)
        what, query = f"{method} {asked.path}", {name: each[0] for name, each in parse_qs(asked.query).items()}
        if OPEN.fullmatch(what):
            body = b""
        elif LIST.fullmatch(what):
            query["filters"], body = json.dumps({"label": [f"{GROUP}={self._group}"]}), b""
        elif CREATE.fullmatch(what):
            self._check_name(query)
            query, body = {"name": query["name"]}, json.dumps(self._container(_decoded(body))).encode()
        elif one := ONE.fullmatch(what):
            version, name = next((version or "", name) for version, name in _pairs(one) if name)
            status, found = self._ask("GET", f"{version}/containers/{name}/json", b"")
            if status != 200:
                return status, found  # nobody can say whose it is
            if ((_decoded(found).get("Config") or {}).get("Labels") or {}).get(GROUP) != self._group:
                raise RefusedError(f"container {name} is not of {self._group}")
            if what.endswith("/rename"):
                self._check_name(query)
            body = b""
        else:
            raise RefusedError(what)
        return self._ask(method, f"{asked.path}?{urlencode(query)}", body)

    def _check_name(self, query: Mapping[str, str]) -> None:
        if not query.get("name", "").startswith(f"{self._group}."):
            raise RefusedError(f"a name that does not begin with {self._group}.")

    def _container(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        settings = self._settings
        if asked.get("Image") != settings.docker_image:
            raise RefusedError(f"image {asked.get('Image')}: only {settings.docker_image} is allowed")
        limits = asked.get("HostConfig") or {}
        return {
            "Image": settings.docker_image,
            "Cmd": asked.get("Cmd"),
            "Env": asked.get("Env"),
            "Labels": {GROUP: self._group, REPLICA: str((asked.get("Labels") or {}).get(REPLICA, ""))},
            "HostConfig": {
                "NetworkMode": settings.docker_network or "default",
                "Memory": limits.get("Memory", 0),
                "NanoCpus": limits.get("NanoCpus", 0),
                "Init": True,
                "ReadonlyRootfs": True,
                "Tmpfs": {"/tmp": ""},  # noqa: S108
                "Binds": [f"{settings.docker_volume}:ro"] if settings.docker_volume else [],
                "CapDrop": ["ALL"],
                "SecurityOpt": ["no-new-privileges:true"],
            },
        }

    def _ask(self, method: str, url: str, body: bytes) -> tuple[int, bytes]:
        engine = _Engine(self._settings.engine_socket)
        try:
            engine.request(method, url, body, {"Content-Type": "application/json"} if body else {})
            answer = engine.getresponse()
            return answer.status, answer.read()
        finally:
            engine.close()


def _pairs(found: re.Match[str]) -> list[tuple[str | None, str | None]]:
    groups = found.groups()
    return list(zip(groups[::2], groups[1::2], strict=True))


def _length(stated: str) -> int:
    if not (stated.isascii() and stated.isdigit() and int(stated) <= LONGEST_BODY):
        raise RefusedError(f"a body of {stated[:20]} bytes; at most {LONGEST_BODY}")
    return int(stated)


def _decoded(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body)
    except ValueError as malformed:
        raise RefusedError(f"a body that is no JSON: {malformed}") from malformed
    if not isinstance(found, dict):
        raise RefusedError("a body that is no JSON object")
    return found


def _message(text: str) -> bytes:
    return json.dumps({"message": text}).encode()


def main() -> int:
    """Serve until SIGTERM."""
    connection, settings = read_settings(os.environ, ProxySettings)
    proxy = SocketProxy(settings, settings.group_in(connection.namespace))
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: threading.Thread(target=proxy.close).start())
    proxy.serve()
    return 0


if __name__ == "__main__":
    sys.exit(main())
