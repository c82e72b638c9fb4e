"""The proxy before a Docker engine: nobody is handled whose group is not known."""

import http.client
import json
import socket
import struct
import threading
from collections.abc import Iterator

import pytest

from autoscaler.live.launchers.docker import GROUP
from autoscaler.live.launchers.socket_proxy import ProxySettings, RefusedError, SocketProxy
from tailpack.local.ports import free_port

OURS = json.dumps({"Config": {"Labels": {GROUP: "shop.payment"}}}).encode()
NO_LABELS = json.dumps({"Config": {"Labels": None}}).encode()


@pytest.fixture
def proxy() -> Iterator[SocketProxy]:
    one = SocketProxy(ProxySettings(http_port=free_port()), "shop.payment")
    yield one
    one._server.server_close()


def engine_saying(proxy: SocketProxy, monkeypatch: pytest.MonkeyPatch, status: int, body: bytes) -> list[str]:
    """Let the engine answer every inspection so; return what it is asked."""
    asked: list[str] = []

    def ask(method: str, url: str, _body: bytes) -> tuple[int, bytes]:
        asked.append(f"{method} {url}")
        return (status, body) if method == "GET" else (204, b"")

    monkeypatch.setattr(proxy, "_ask", ask)
    return asked


@pytest.mark.parametrize("status", [404, 409, 500])
def test_who_cannot_be_inspected_is_not_handled(
    proxy: SocketProxy, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    asked = engine_saying(proxy, monkeypatch, status, b"{}")
    assert proxy.answer("POST", "/v1.41/containers/abc/kill?signal=KILL", b"") == (status, b"{}")
    assert asked == ["GET /v1.41/containers/abc/json"]


def test_who_has_no_labels_is_not_handled(proxy: SocketProxy, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = engine_saying(proxy, monkeypatch, 200, NO_LABELS)
    with pytest.raises(RefusedError, match=r"not of shop\.payment"):
        proxy.answer("DELETE", "/v1.41/containers/abc?force=1", b"")
    assert asked == ["GET /v1.41/containers/abc/json"]


def test_who_is_of_the_group_is_handled(proxy: SocketProxy, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = engine_saying(proxy, monkeypatch, 200, OURS)
    assert proxy.answer("POST", "/v1.41/containers/abc/kill?signal=TERM", b"")[0] == 204
    assert asked[1:] == ["POST /v1.41/containers/abc/kill?signal=TERM"]


def test_a_client_that_leaves_before_its_answer_leaves_no_trace(
    proxy: SocketProxy, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As the engine's client does that has waited long enough for the end of a container."""
    proxy._server.daemon_threads = False  # its end is waited for
    asked, left = threading.Event(), threading.Event()

    def ask(method: str, url: str, body: bytes) -> tuple[int, bytes]:
        asked.set()
        left.wait(10)
        return 200, b"x" * 20_000_000

    monkeypatch.setattr(proxy, "_ask", ask)
    serving = threading.Thread(target=proxy.serve)
    serving.start()
    with socket.create_connection(("127.0.0.1", proxy.port)) as client:
        client.sendall(b"GET /_ping HTTP/1.1\r\nHost: engine\r\n\r\n")
        assert asked.wait(10)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    left.set()
    proxy.close()
    serving.join()
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("length", ["-1", "many", "1e3", "99999999"])
def test_the_length_of_a_body_is_not_believed(proxy: SocketProxy, length: str) -> None:
    serving = threading.Thread(target=proxy.serve)
    serving.start()
    asking = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=10)
    asking.putrequest("POST", "/containers/create")
    asking.putheader("Content-Length", length)
    asking.endheaders()
    answer = asking.getresponse()
    assert answer.status == 403
    assert b"at most 1000000" in answer.read()
    asking.close()
    proxy.close()
    serving.join()
