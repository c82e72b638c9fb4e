"""Who stands by says who leads, and tells why it cannot lead: in its log once, on its pages, by its metric."""

import json
import logging
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from kafka_helpers import wait_for

from autoscaler.live.launcher import LauncherError
from autoscaler.live.leadership import LEASE_DURATION_S, Leadership, stand_by
from autoscaler.live.settings import AutoscalerSettings
from tailpack.local.ports import free_port

REFUSED = 'Kubernetes refuses (403): leases "autoscaler" is forbidden; give its Role that verb'


class Leases:
    """A Lease that another one renews all the time, or that is refused."""

    def __init__(self) -> None:
        self.refused, self.holder, self.version = False, "another", 0

    def lease(self, name: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        if self.refused:
            raise LauncherError(REFUSED)
        self.version += 1
        self.holder = body["spec"]["holderIdentity"] if body else self.holder
        return {
            "metadata": {"name": name, "resourceVersion": str(self.version)},
            "spec": {"holderIdentity": self.holder},
        }


class StandsBy:
    def __init__(self) -> None:
        self.leases, self.port, self.stop = Leases(), free_port(), threading.Event()
        self.won: list[bool] = []
        leadership = Leadership(self.leases.lease, "autoscaler", "me", lambda _: None)
        settings = AutoscalerSettings(policy="static", state_dir="unused", http_port=self.port)
        self.thread = threading.Thread(target=lambda: self.won.append(stand_by(leadership, settings, self.stop)))
        self.thread.start()

    def get(self, path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=10) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as unwell:
            return unwell.code, unwell.read().decode()
        except OSError:
            return 0, ""


@pytest.fixture
def one() -> Iterator[StandsBy]:
    one = StandsBy()
    yield one
    one.stop.set()
    one.thread.join()


def test_a_lease_that_is_refused_is_told_once_and_who_stands_by_is_not_ready_but_lives(
    one: StandsBy, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "autoscaler")
    wait_for(lambda: "standby; another leads" in one.get("/healthz")[1], "it stands by")
    assert one.get("/healthz")[0] == 200
    metrics = one.get("/metrics")[1]
    assert "tailpack_leading 0.0" in metrics
    assert 'tailpack_condition{type="leadership"} 0.0' in metrics

    one.leases.refused = True
    wait_for(lambda: one.get("/healthz")[0] == 503, "it is not ready")
    assert json.loads(one.get("/healthz")[1])["status"] == REFUSED
    assert one.get("/livez")[0] == 200, "a new start would mend nothing"
    assert 'tailpack_condition{type="leadership"} 1.0' in one.get("/metrics")[1]

    one.leases.refused = False
    wait_for(lambda: one.get("/healthz")[0] == 200, "it could lead again")
    assert caplog.messages == [f"leadership: {REFUSED}", "leadership: recovered"]
    one.leases.holder = ""
    wait_for(lambda: one.won == [True], "it leads")


def test_a_leader_that_cannot_renew_says_why_it_does_not_act() -> None:
    leases, now_s = Leases(), [0.0]
    leader = Leadership(leases.lease, "autoscaler", "me", lambda _: None, lambda: now_s[0])
    leases.holder = ""
    assert leader.try_acquire()
    assert leader.why_not_leading == ""
    now_s[0] += 2 * LEASE_DURATION_S
    assert "Lease autoscaler was not renewed for 1.5 s" in leader.why_not_leading
    leases.refused = True
    leader.try_acquire()
    assert leader.why_not_leading == REFUSED
