"""The proxy before a Docker engine: nobody is handled whose group is not known."""

import json
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
