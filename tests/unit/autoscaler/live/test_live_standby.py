"""A standby shows the leader, and reports why it cannot lead: once in its log, on its pages and in its metric."""

import json
import logging
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from http_answer import http_answer
from kafka_helpers import wait_for

from autoscaler.live.launcher import LauncherError
from autoscaler.live.leadership import Leadership, stand_by
from autoscaler.live.settings import AutoscalerSettings
from contracts.waiting import Stop
from tailpack.local.ports import free_port

REFUSAL = 'Kubernetes refuses (403): leases "autoscaler" is forbidden; give its Role that verb'


class Leases:
    """A Lease that another process renews all the time, or that the server refuses."""

    def __init__(self) -> None:
        self.refused, self.holder, self.version = False, "another", 0

    def lease(self, name: str, body: Any = None) -> dict[str, Any]:
        if self.refused:
            raise LauncherError(REFUSAL)
        self.version += 1
        self.holder = body["spec"]["holderIdentity"] if isinstance(body, dict) else self.holder
        return {
            "metadata": {"name": name, "resourceVersion": str(self.version)},
            "spec": {"holderIdentity": self.holder},
        }


class StandbyProcess:
    def __init__(self) -> None:
        self.leases, self.port, self.stop = Leases(), free_port(), Stop()
        self.won: list[bool] = []
        leadership = Leadership(self.leases.lease, "autoscaler", "me", duration_s=5.0)
        settings = AutoscalerSettings(policy="static", state_dir="unused", http_port=self.port)
        self.thread = threading.Thread(target=lambda: self.won.append(stand_by(leadership, settings, self.stop)))
        self.thread.start()

    def get(self, path: str) -> tuple[int, str]:
        return http_answer(f"http://127.0.0.1:{self.port}{path}", timeout_s=10)


@pytest.fixture
def standby() -> Iterator[StandbyProcess]:
    standby = StandbyProcess()
    yield standby
    standby.stop.set()
    standby.thread.join()


def test_a_refused_lease_is_logged_once_and_the_standby_is_alive_but_not_ready(
    standby: StandbyProcess, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "autoscaler")
    wait_for(lambda: "standby; another leads" in standby.get("/healthz")[1], "it is a standby")
    assert standby.get("/healthz")[0] == 200
    metrics = standby.get("/metrics")[1]
    assert "tailpack_leading 0.0" in metrics
    assert 'tailpack_condition{type="leadership"} 0.0' in metrics

    standby.leases.refused = True
    wait_for(lambda: standby.get("/healthz")[0] == 503, "it is not ready")
    assert json.loads(standby.get("/healthz")[1])["status"] == REFUSAL
    assert standby.get("/livez")[0] == 200, "a restart would not help"
    assert 'tailpack_condition{type="leadership"} 1.0' in standby.get("/metrics")[1]

    standby.leases.refused = False
    wait_for(lambda: standby.get("/healthz")[0] == 200, "it could lead again")
    assert caplog.messages == [f"leadership: {REFUSAL}", "leadership: recovered"]
    standby.leases.holder = ""
    wait_for(lambda: standby.won == [True], "it leads")
