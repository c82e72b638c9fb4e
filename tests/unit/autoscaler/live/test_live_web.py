import json
import socket
import struct
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from http.client import HTTPConnection
from typing import Any

import psutil
import pytest

from autoscaler.live.metrics import Metrics
from autoscaler.live.web import Source, respond
from contracts.pages import Answer, PortTakenError, WebServer


@dataclass
class State:
    ticks: int = 5
    age_s: float = 0.4
    troubles: dict[str, str] = field(default_factory=dict)
    unwell: str = ""
    decisions: list[dict[str, int]] = field(default_factory=lambda: [{"tick": n} for n in range(100, 0, -1)])


@pytest.fixture
def state() -> State:
    return State()


@pytest.fixture
def source(state: State) -> Source:
    return Source(
        last_tick=lambda: (state.ticks, state.age_s),
        plan=lambda: {"in_force": None, "wanted": None},
        decisions=lambda limit: state.decisions[:limit],
        registry=Metrics().registry,
        tick_limit_s=3.0,
        troubles=lambda: state.troubles,
        unwell=lambda: state.unwell,
    )


def get(source: Source, path: str, query: str = "") -> tuple[str, Any]:
    answer: Answer = respond(source, path, query)
    return answer.status, json.loads(answer.body)


def test_healthy_while_ticks_are_recent(source: Source) -> None:
    status, body = get(source, "/healthz")
    assert status == "200 OK"
    assert body == {"status": "ok", "ticks": 5, "last_tick_age_s": 0.4, "limit_s": 3.0}


def test_in_trouble_it_is_degraded_and_says_why_but_nobody_shall_start_it_anew(source: Source, state: State) -> None:
    state.troubles = {"plans": "plan 7 is not taken within 12 s by payment-1 (serves by 6)"}
    status, body = get(source, "/healthz")
    assert (status, body["status"], body["troubles"]) == ("200 OK", "degraded", state.troubles)
    state.ticks = 0
    assert get(source, "/healthz")[1]["status"] == "no tick yet"


@pytest.mark.parametrize(("ticks", "age_s"), [(0, 0.1), (5, 3.1)])
def test_unwell_before_the_first_tick_and_when_ticks_stop(
    source: Source, state: State, ticks: int, age_s: float
) -> None:
    state.ticks, state.age_s = ticks, age_s
    status, body = get(source, "/healthz")
    assert status == "503 Service Unavailable"
    assert body["last_tick_age_s"] == age_s


def test_unwell_while_the_policy_fails_however_recent_the_tick(source: Source, state: State) -> None:
    state.troubles, state.unwell = {"policy": "tail-aware failed"}, "tail-aware failed"
    status, body = get(source, "/healthz")
    assert (status, body["status"]) == ("503 Service Unavailable", "tail-aware failed")


def test_decisions_are_limited(source: Source) -> None:
    assert len(get(source, "/decisions")[1]) == 100
    assert get(source, "/decisions", "limit=2")[1] == [{"tick": 100}, {"tick": 99}]


@pytest.mark.parametrize("limit", ["0", "101", "-1", "ten", "1.5", "²"])
def test_a_senseless_limit_is_refused_in_words(source: Source, limit: str) -> None:
    status, body = get(source, "/decisions", f"limit={limit}")
    assert status == "400 Bad Request"
    assert "whole number from 1 to 100" in body["error"]


def test_unknown_pages(source: Source) -> None:
    assert set(get(source, "/")[1]) == {"/", "/healthz", "/livez", "/plan", "/decisions", "/targets", "/metrics"}
    assert get(source, "/admin")[0] == "404 Not Found"


@pytest.fixture
def server(source: Source) -> Iterator[WebServer]:
    server = WebServer(partial(respond, source), 0)
    server.start()
    yield server
    server.close()


def test_over_http(server: WebServer) -> None:
    with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/metrics", timeout=5) as answer:
        assert answer.headers["Content-Type"].startswith("text/plain")
        assert b"tailpack_service_rate_events_per_second" in answer.read()
    for method, path, status in (("GET", "/nothing", 404), ("POST", "/plan", 405)):
        with closing(HTTPConnection("127.0.0.1", server.port, timeout=5)) as connection:
            connection.request(method, path)
            assert connection.getresponse().status == status


def test_a_client_that_gives_up_leaves_no_trace(
    server: WebServer, source: Source, state: State, capsys: pytest.CaptureFixture[str]
) -> None:
    """It closes while the answer is made, which is more than fits into what the network keeps."""
    server._server.daemon_threads = False  # their end is waited for
    state.troubles = {"plans": "x" * 20_000_000}
    for _ in range(3):
        with socket.create_connection(("127.0.0.1", server.port)) as client:
            client.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
            client.recv(1)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    server.close()
    assert capsys.readouterr().err == ""


def test_other_machines_are_not_let_in_unless_told(server: WebServer) -> None:
    listening = {one.laddr.ip for one in psutil.Process().net_connections("tcp") if one.laddr.port == server.port}
    assert listening == {"127.0.0.1"}


def test_an_address_of_nobody_is_an_error_at_once(source: Source) -> None:
    with pytest.raises(PortTakenError, match=r"cannot listen on 192\.0\.2\.1:8080 .* TAILPACK_HTTP_HOST"):
        WebServer(partial(respond, source), 8080, "192.0.2.1")


def test_a_taken_port_is_an_error_at_once(server: WebServer, source: Source) -> None:
    with pytest.raises(PortTakenError, match=f"port {server.port} is taken"):
        WebServer(partial(respond, source), server.port)
