"""Leader election by a Lease: one leader at a time, without comparing clocks, also on a slow API server."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from autoscaler.live.launcher import LauncherError
from autoscaler.live.leadership import POLL_INTERVAL_S, Leadership

DURATION_S = 5.0
STEP_S = 0.1
SILENCE = "the API server does not answer"


@dataclass
class Server:
    """A Lease that rejects changes of outdated versions and changes by another holder."""

    spec: dict[str, Any] = field(default_factory=dict)
    version: int = 0
    calls: int = 0
    silent: bool = False

    def lease(self, name: str, body: Any = None) -> dict[str, Any]:
        self.calls += 1
        if self.silent:
            raise LauncherError(SILENCE)
        if isinstance(body, list):
            held, change = body
            if held["value"] != self.spec.get("holderIdentity"):
                raise LauncherError("the version is outdated", 409)
            changed = {change["path"].removeprefix("/spec/"): change["value"]}
            self.spec, self.version = self.spec | changed, self.version + 1
        elif body is not None:
            if body["metadata"]["resourceVersion"] != str(self.version):
                raise LauncherError("the version is outdated", 409)
            self.spec, self.version = self.spec | body["spec"], self.version + 1
        return {"metadata": {"name": name, "resourceVersion": str(self.version)}, "spec": self.spec}


class Two:
    """Two autoscalers with one Lease and one fake clock. The calls of `a` take time if `call_s` is set."""

    def __init__(self) -> None:
        self.now_s = self.call_s = 0.0
        self.meanwhile: Callable[[], object] = lambda: None
        """Called at each step of time."""
        self.server = Server()
        self.a, self.b = (
            Leadership(lease, "autoscaler", who, DURATION_S, clock=lambda: self.now_s)
            for who, lease in (("a", self.slow_lease), ("b", self.server.lease))
        )

    def slow_lease(self, name: str, body: Any = None) -> dict[str, Any]:
        self.wait(self.call_s / 2)
        answer = self.server.lease(name, body)
        self.wait(self.call_s / 2)
        return answer

    def wait(self, duration_s: float) -> None:
        for _ in range(round(duration_s / STEP_S)):
            self.now_s += STEP_S
            self.meanwhile()


def test_a_standby_takes_over_once_the_lease_has_not_changed_for_its_duration() -> None:
    two = Two()
    assert two.a.try_acquire()
    assert not two.b.try_acquire()
    dead_s = two.now_s
    while not two.b.try_acquire():
        two.now_s += POLL_INTERVAL_S
    assert DURATION_S < two.now_s - dead_s <= DURATION_S + 2 * POLL_INTERVAL_S
    assert not two.a.is_leader, "a leader that was paused for this long may not act"
    two.a.renew()
    assert two.a.holder == "b"
    assert not two.a.is_leader


@pytest.mark.parametrize("call_s", [0.0, 0.4, 0.8, 2.4])
def test_a_slow_server_is_not_a_lost_lease(call_s: float) -> None:
    two = Two()
    two.call_s = call_s
    assert two.a.try_acquire()
    leaders = []

    def look() -> None:
        two.b.try_acquire()
        leaders.append((two.a.is_leader, two.b.is_leader))

    two.meanwhile, began_s, calls = look, two.now_s, 0
    while two.now_s - began_s < 60.0:
        two.wait(two.a.renew())
        calls += 1
    assert set(leaders) == {(True, False)}
    assert two.server.calls == calls + 2 + len(leaders), "one call a renewal"
    sent_s = two.now_s
    two.a.renew()
    two.now_s = sent_s + DURATION_S
    assert "Lease autoscaler was not renewed for 5 s" in two.a.why_not_leading, "aged from when it was sent"


def test_a_standby_counts_from_the_answer_that_showed_the_newest_renewal() -> None:
    """The standby's call is sent before the leader's last renewal, and answered after it."""
    two = Two()
    two.b.try_acquire()
    two.now_s += DURATION_S + 1.0
    two.call_s = 2.0
    two.meanwhile = lambda: two.now_s < DURATION_S + 1.9 and two.b.renew()  # a's request arrives 0.1 s later
    assert not two.a.try_acquire()
    two.call_s, two.meanwhile = 0.0, lambda: None
    while not two.a.try_acquire():
        two.now_s += STEP_S
    assert not two.b.is_leader


def test_an_unanswered_renewal_does_not_extend_the_lease_and_is_repeated_by_one_call() -> None:
    two = Two()
    two.a.try_acquire()
    two.now_s += 1.0
    two.server.version += 1  # carried out, but the answer is lost
    two.server.silent = True
    two.a.renew()
    assert two.a.why_not_leading == "", "it may act until the Lease expires"
    two.server.silent = False
    calls, two.now_s = two.server.calls, DURATION_S
    assert two.a.why_not_leading == SILENCE
    two.a.renew()
    assert (two.server.calls - calls, two.a.why_not_leading, two.a.problem) == (1, "", "")


def test_after_an_api_outage_the_leader_can_renew_first() -> None:
    two = Two()
    two.a.try_acquire()
    two.b.try_acquire()
    two.server.silent = True
    two.now_s += 60.0
    assert not two.b.try_acquire()
    assert two.b.problem == SILENCE
    two.server.silent = False
    assert not two.b.try_acquire(), "silence is no evidence that the leader has gone"
    two.a.renew()
    assert two.a.is_leader


def test_a_standby_takes_over_though_each_third_call_fails() -> None:
    two = Two()
    two.a.try_acquire()
    for attempt in range(60):
        two.server.silent = attempt % 3 == 2
        if two.b.try_acquire():
            break
        two.now_s += POLL_INTERVAL_S
    assert two.b.is_leader
    assert not two.a.is_leader


def test_two_simultaneous_attempts_give_one_leader() -> None:
    two = Two()
    seen = two.server.lease("autoscaler")
    two.a._lease = two.b._lease = lambda name, body=None: seen if body is None else two.server.lease(name, body)
    assert [two.a.try_acquire(), two.b.try_acquire()] == [True, False]


def test_a_released_lease_is_taken_at_once() -> None:
    two = Two()
    two.a.try_acquire()
    two.a.release()
    assert two.b.try_acquire()
    assert two.server.spec["leaseTransitions"] == 2
