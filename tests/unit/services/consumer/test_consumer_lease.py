"""Who has not heard from the group for a session starts nothing new."""

import asyncio

import pytest
from aiokafka.consumer.group_coordinator import GroupCoordinator

from services.consumer.coordinator import PlanCoordinator
from services.consumer.lease import Lease

SESSION_S = 6.0


class Clock:
    def __init__(self) -> None:
        self.now_s = 50.0

    def __call__(self) -> float:
        return self.now_s


def test_a_lease_runs_for_a_session_after_each_renewal():
    clock = Clock()
    lease = Lease(SESSION_S, clock)
    clock.now_s += SESSION_S
    assert not lease.is_out
    clock.now_s += 0.1
    assert lease.is_out
    lease.renew(clock.now_s)
    assert not lease.is_out


def test_an_answer_that_lay_unread_for_a_session_proves_nothing():
    clock = Clock()
    lease = Lease(SESSION_S, clock)
    asked_s = lease.now_s()
    clock.now_s += SESSION_S + 1  # stopped here, the answer on its way
    lease.renew(asked_s)
    assert lease.is_out
    lease.renew(lease.now_s())
    lease.renew(asked_s)
    assert not lease.is_out, "an older answer takes nothing back"


@pytest.mark.parametrize(("asks", "words"), [("_do_heartbeat", ()), ("_do_commit_offsets", (None, {}))])
def test_heartbeats_and_commits_renew_it_from_when_they_were_sent(
    asks: str, words: tuple[object, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    lease = Lease(SESSION_S, clock)

    async def answered_late(*_: object) -> bool:
        clock.now_s += SESSION_S + 1  # stopped while the answer was on its way
        return True

    monkeypatch.setattr(GroupCoordinator, asks, answered_late)
    coordinator = PlanCoordinator.__new__(PlanCoordinator)
    coordinator.lease = lease
    asyncio.run(getattr(coordinator, asks)(*words))
    assert lease.is_out


def test_while_a_round_is_on_the_broker_is_silent_and_the_lease_holds():
    clock = Clock()
    lease = Lease(SESSION_S, clock)
    lease.waits = True
    clock.now_s += 10 * SESSION_S
    assert not lease.is_out
    lease.waits = False
    assert lease.is_out, "the round is over and nobody has confirmed anything"
