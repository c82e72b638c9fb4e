"""Controls of a run admit only the user with the token, and accept only bounded changes."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from bench.scenario import load_scenario
from contracts.clock import now_us
from contracts.connection import Connection
from loadgen.spec import LoadSpec
from tailpack import controls
from tailpack.controls import PATH, TOKEN, Controls

OWN = {"Host": "127.0.0.1:8099", "Origin": "http://127.0.0.1:8099"}


@pytest.fixture
def run(tmp_path: Path) -> Controls:
    spec = load_scenario("demo", {"faults": ["burst 0-120 0.5"]}).load_spec()
    found = Controls(Connection(bootstrap_servers="127.0.0.1:1"), spec, tmp_path, lambda _: None)
    found.started_us = now_us() - 30_000_000
    return found


def act(run: Controls, action: str, path: str = PATH, headers: Any = (), **body: Any) -> tuple[int, str]:
    answer = run.answer(path, OWN | {TOKEN: run.token} | dict(headers), msgspec.json.encode({"action": action} | body))
    return int(answer.status[:3]), next(iter(msgspec.json.decode(answer.body).values()))


@pytest.mark.parametrize("headers", [
    {TOKEN: ""}, {TOKEN: "\udcff"}, {"Origin": "http://evil.example"}, {"Origin": "null"},
    {"Host": "evil.example:80", "Origin": "http://evil.example:80"},
])  # fmt: skip
def test_other_users_and_sites_are_refused(run: Controls, headers: dict[str, str]) -> None:
    assert act(run, "load", headers=headers, value=1)[0] == 403
    assert run.done == []


@pytest.mark.parametrize(("action", "more", "reason"), [
    ("stop", {}, "Invalid enum value"), ("load", {"value": 3.01}, "from 0 to 3"),
    ("load", {"value": -1}, "from 0 to 3"), ("hot-key", {"value": 1.5}, "from 0 to 1"),
    ("kill", {"replica": "../payment-0"}, "running: none"), ("load", {"path": "/live"}, "no page"),
])  # fmt: skip
def test_a_refusal_has_its_reason(run: Controls, action: str, more: Any, reason: str) -> None:
    status, text = act(run, action, **more)
    assert status in (404, 409)
    assert reason in text
    assert run.done == []


def test_changes_of_the_load_follow_each_other(run: Controls, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for value, second in ((2, 30), (0.5, 30), (0, 50)):
        run.started_us = now_us() - second * 1_000_000
        assert act(run, "load", value=value) == (200, run.done[-1])
    spec = msgspec.json.decode((tmp_path / "load.json").read_bytes(), type=LoadSpec)
    assert spec.faults == ("burst 0-120 0.5", "burst 36-56 0.5", "burst 56-120 0")
    assert spec.changed_s == 56
    monkeypatch.setattr(controls, "PLANNING_S", 0.0)
    assert "no event would be sent" in act(run, "load", value=1)[1]
    for second, reason in ((117, "the load ends at 120 s"), (-1, "while the load is sent")):
        run.started_us = now_us() - second * 1_000_000
        assert reason in act(run, "load", value=1)[1]
    assert len(run.done) == 3
