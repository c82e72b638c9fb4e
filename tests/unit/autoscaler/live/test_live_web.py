import json
import socket
import struct
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import msgspec
import pytest

from autoscaler.live.metrics import Metrics
from autoscaler.live.web import Source, respond
from contracts import pages
from contracts.clock import monotonic_s
from contracts.journal import PartitionState, TickRecord
from contracts.pages import Answer, PortTakenError, WebServer


@dataclass
class State:
    ticks: int = 5
    age_s: float = 0.4
    problems: dict[str, str] = field(default_factory=dict)
    unhealthy_reason: str = ""
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
        problems=lambda: state.problems,
        unhealthy_reason=lambda: state.unhealthy_reason,
    )


def get(source: Source, path: str, query: str = "") -> tuple[str, Any]:
    answer: Answer = respond(source, path, query)
    return answer.status, json.loads(answer.body)


@pytest.mark.parametrize(
    ("changes", "status", "code"),
    [
        ({}, "ok", 200),
        ({"problems": {"plans": "plan 7 is not taken"}}, "degraded", 200),  # a restart fixes nothing
        ({"ticks": 0}, "no tick yet", 503),
        ({"age_s": 3.1}, "the last tick is older than 3 s", 503),
        ({"problems": {"policy": "failed"}, "unhealthy_reason": "failed"}, "failed", 503),
    ],
)
def test_health_is_503_without_recent_ticks_or_decisions_and_lists_all_problems(
    source: Source, state: State, changes: dict[str, Any], status: str, code: int
) -> None:
    for name, value in changes.items():
        setattr(state, name, value)
    answered, body = get(source, "/healthz")
    assert (answered[:3], body["status"], body.get("problems", {})) == (str(code), status, state.problems)


@pytest.fixture
def server(source: Source) -> Iterator[WebServer]:
    server = WebServer(partial(respond, source), 0)
    server.start()
    yield server
    server.close()


@pytest.mark.parametrize("limit", ["0", "101", "-1", "x", "\u0663", "9" * 5000])
def test_a_limit_that_is_no_number_of_decisions_is_refused(source: Source, limit: str) -> None:
    assert get(source, "/decisions", f"limit={limit}")[0] == "400 Bad Request"


def test_clients_that_send_nothing_hold_neither_all_connections_nor_one_for_ever(
    server: WebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ExitStack() as idle:
        clients = [idle.enter_context(socket.create_connection(("127.0.0.1", server.port))) for _ in range(70)]
        for client in clients[: 70 - pages.MAX_CONNECTIONS]:
            client.sendall(b"G")
            assert client.recv(1) == b"", "the oldest are closed"
        with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/healthz", timeout=5) as answer:
            assert answer.status == 200
        now_s = monotonic_s() + pages.REQUEST_DEADLINE_S + 1
        monkeypatch.setattr(pages, "monotonic_s", lambda: now_s)
        assert clients[-1].recv(1) == b"", "the newest at its deadline"


def test_a_client_that_disconnects_leaves_no_log_line(
    server: WebServer, source: Source, state: State, capsys: pytest.CaptureFixture[str]
) -> None:
    """It disconnects during the answer, which is larger than the network buffers."""
    server.daemon_threads = False  # their end is waited for
    state.problems = {"plans": "x" * 20_000_000}
    for _ in range(3):
        with socket.create_connection(("127.0.0.1", server.port)) as client:
            client.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
            client.recv(1)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    server.close()
    assert capsys.readouterr().err == ""


def test_a_port_in_use_is_reported_at_once(server: WebServer, source: Source) -> None:
    with pytest.raises(PortTakenError, match=f"port {server.port} is taken"):
        WebServer(partial(respond, source), server.port)


def test_metrics_of_partitions_that_are_gone_are_removed() -> None:
    metrics = Metrics()
    counts = dict.fromkeys(("at_us", "tick", "ready_replicas", "requested_replicas", "planned_replicas", "epoch"), 1)
    for count in (3, 1):
        states = [PartitionState(partition=n, arrival_rate=1, lag=n, owner="payment-0") for n in range(count)]
        fields = {"policy": "p", "action": "none", "reason": "", "service_rate": 1.0, "partitions": states}
        metrics.count_entry(msgspec.convert({"kind": "tick"} | counts | fields, TickRecord))
    labelled = [sample for metric in metrics.registry.collect() for sample in metric.samples]
    assert {sample.labels["partition"] for sample in labelled if "partition" in sample.labels} == {"0"}
