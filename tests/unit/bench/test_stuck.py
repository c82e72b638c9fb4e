"""What keeps pods from getting ready is named at once, and waited for only while it may come right."""

from typing import Any

import pytest

import bench.stuck
from bench.stuck import Hope


def pod(name: str, *, ends: int = 0, **status: Any) -> dict[str, Any]:
    """Return one whose container has ended badly so often, and runs again."""
    last = {"terminated": {"exitCode": 4, "message": 'first line\n{"message": "no Kafka", "level": "ERROR"}\n'}}
    one = {"name": name, "state": {"running": {}}, "restartCount": ends, "lastState": last if ends else {}} | status
    return {"metadata": {"name": f"{name}-x"}, "status": {"containerStatuses": [one]}}


def waiting(name: str, reason: str) -> dict[str, Any]:
    return pod(name, state={"waiting": {"reason": reason, "message": "why"}})


def test_what_crashes_twice_while_nothing_else_gets_ready_is_given_up_with_its_last_words() -> None:
    hope = Hope()
    assert hope.look(["autoscaler"], [pod("autoscaler", ends=1)], [], first_come=False)
    assert hope.causes == "pod autoscaler-x: autoscaler ended with status 4: no Kafka"
    assert hope.look(["autoscaler"], [pod("autoscaler", ends=2)], [], first_come=False)
    assert not hope.look(["autoscaler"], [pod("autoscaler", ends=3)], [], first_come=False)


@pytest.mark.parametrize(("missing", "first_come"), [(["autoscaler"], False), (["kafka", "autoscaler"], True)])
def test_what_crashes_is_waited_for_while_something_gets_ready_or_the_brokers_come(
    missing: list[str], first_come: bool
) -> None:
    hope = Hope()
    hope.look(["kafka", "autoscaler"], [pod("autoscaler")], [], first_come=True)
    assert hope.look(missing, [pod("autoscaler", ends=5)], [], first_come=first_come)
    assert hope.look(missing, [pod("autoscaler", ends=6)], [], first_come=first_come)


def test_who_serves_again_is_no_cause() -> None:
    hope = Hope()
    assert hope.look(["order"], [pod("payment", ends=7, ready=True)], [], first_come=False)
    assert hope.look(["order"], [pod("payment", ends=9, ready=True)], [], first_come=False)
    assert hope.causes == ""


def test_what_waits_for_an_image_or_a_quota_is_given_up_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = [0.0]
    monkeypatch.setattr(bench.stuck, "steady_s", lambda: now_s[0])
    over = {"involvedObject": {"name": "order-1"}, "message": "exceeded quota"}
    for pods, refused, cause in (
        ([waiting("order", "ErrImagePull")], [], "pod order-x: ErrImagePull: why"),
        ([], [over, over | {"message": "exceeded quota, again"}], "exceeded quota, again"),
    ):
        hope = Hope()
        assert hope.look(["order"], pods, refused, first_come=True)
        assert hope.causes == cause
        now_s[0] += bench.stuck.STUCK_S + 1
        assert not hope.look(["order"], pods, refused, first_come=True)
    assert Hope().look(["order"], [waiting("order", "CrashLoopBackOff")], [], first_come=False)
