"""Leader election by a Lease: one leader at a time, without comparing clocks."""

from dataclasses import dataclass, field
from typing import Any

from autoscaler.live.launcher import LauncherError
from autoscaler.live.leadership import LEASE_DURATION_S, POLL_INTERVAL_S, RENEW_INTERVAL_S, Leadership


@dataclass
class Server:
    """A Lease that rejects changes of outdated versions."""

    spec: dict[str, Any] = field(default_factory=dict)
    version: int = 0
    silent: bool = False

    def lease(self, name: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        if self.silent:
            raise LauncherError("the API server does not answer")
        if body is not None:
            if body["metadata"]["resourceVersion"] != str(self.version):
                raise LauncherError("refused (409)")
            self.spec, self.version = self.spec | body["spec"], self.version + 1
        return {"metadata": {"name": name, "resourceVersion": str(self.version)}, "spec": self.spec}


class Two:
    """Two autoscalers with one Lease and one fake clock."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.server = Server()
        self.a, self.b = (
            Leadership(self.server.lease, "autoscaler", who, lambda _: None, lambda: self.now_s) for who in ("a", "b")
        )


def test_a_standby_takes_over_within_three_seconds_of_the_last_renewal() -> None:
    two = Two()
    assert two.a.try_acquire()
    assert not two.b.try_acquire()
    dead_s = two.now_s
    while not two.b.try_acquire():
        two.now_s += POLL_INTERVAL_S
    assert LEASE_DURATION_S < two.now_s - dead_s < 3.0
    assert not two.a.is_leader, "a leader that was paused for this long may not act"
    assert not two.a.try_acquire()
    assert two.a.holder == "b"


def test_a_standby_does_not_take_over_from_a_renewing_leader() -> None:
    two = Two()
    two.a.try_acquire()
    for _ in range(50):
        two.now_s += RENEW_INTERVAL_S
        assert two.a.try_acquire()
        assert not two.b.try_acquire()


def test_after_an_api_outage_the_leader_can_renew_first() -> None:
    two = Two()
    two.a.try_acquire()
    two.b.try_acquire()
    two.server.silent = True
    two.now_s += 60.0
    assert not two.b.try_acquire()
    assert two.b.problem == "the API server does not answer"
    two.server.silent = False
    assert not two.b.try_acquire(), "silence is no evidence that the leader has gone"
    assert two.a.try_acquire()


def test_two_simultaneous_attempts_give_one_leader() -> None:
    two = Two()
    seen = two.server.lease("autoscaler")
    two.server.lease = lambda name, body=None: seen if body is None else Server.lease(two.server, name, body)  # type: ignore[method-assign]
    assert [two.a.try_acquire(), two.b.try_acquire()] == [True, False]


def test_a_released_lease_is_taken_at_once() -> None:
    two = Two()
    two.a.try_acquire()
    two.a.release()
    assert two.b.try_acquire()
    assert two.server.spec["leaseTransitions"] == 3
