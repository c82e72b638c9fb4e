"""The lease expires a session after the last proof of membership, or when the process stood still. Joining again."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.client import ConnectionGroup
from aiokafka.conn import CloseReason
from aiokafka.consumer.group_coordinator import GroupCoordinator
from aiokafka.errors import (
    IllegalGenerationError,
    NoError,
    RebalanceInProgressError,
    RequestTimedOutError,
    UnknownMemberIdError,
)
from aiokafka.protocol.commit import OffsetCommitRequest
from aiokafka.protocol.group import HeartbeatRequest, JoinGroupRequest, SyncGroupRequest
from aiokafka_bench import Group, joined, take_turns

from services.consumer.coordinator import PlanCoordinator
from services.consumer.lease import Lease, Prober

SESSION_S = 6.0
REBALANCE_S = 10.0
STEP_S = 0.5


class Clock:
    """A clock: in `pass_s` the process checks its lease regularly, in `freeze` it does not."""

    def __init__(self) -> None:
        self.now_s = 50.0
        self.lease = Lease(SESSION_S, REBALANCE_S, self)

    def __call__(self) -> float:
        return self.now_s

    def pass_s(self, seconds: float) -> None:
        for _ in range(round(seconds / STEP_S)):
            self.now_s += STEP_S
            _ = self.lease.is_expired

    def freeze(self, seconds: float) -> None:
        self.now_s += seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_a_lease_is_valid_for_a_session_after_each_renewal(clock: Clock) -> None:
    clock.pass_s(SESSION_S)
    assert not clock.lease.is_expired
    clock.pass_s(STEP_S)
    assert clock.lease.is_expired
    clock.lease.renew(clock.now_s)
    assert not clock.lease.is_expired


def test_an_older_answer_does_not_shorten_the_lease(clock: Clock) -> None:
    sent_s = clock.now_s
    clock.pass_s(SESSION_S + 1)
    clock.lease.renew(sent_s)
    assert clock.lease.is_expired, "the answer lay unread for a session"
    clock.lease.renew(clock.now_s)
    clock.lease.renew(sent_s)
    assert not clock.lease.is_expired


def test_heartbeats_in_a_rebalance_renew_the_lease_only_until_the_rebalance_must_end(clock) -> None:
    for _ in range(round(REBALANCE_S / STEP_S)):
        clock.pass_s(STEP_S)
        clock.lease.renew(clock.now_s, in_rebalance=True)
        assert not clock.lease.is_expired
    clock.pass_s(STEP_S)
    clock.lease.renew(clock.now_s, in_rebalance=True)
    assert clock.lease.is_expired, "the group continues without this member"
    clock.lease.renew(clock.now_s)
    assert not clock.lease.is_expired


def test_after_a_gap_only_the_answer_to_a_later_request_renews_the_lease(clock: Clock) -> None:
    clock.freeze(SESSION_S / 3)
    assert not clock.lease.is_expired
    sent_s = clock.now_s
    clock.freeze(SESSION_S / 3 + 0.1)
    clock.lease.renew(sent_s)
    assert clock.lease.is_expired, "the request was sent before the gap"
    clock.lease.renew(clock.now_s)
    assert not clock.lease.is_expired


def test_a_gap_is_detected_without_any_event(clock: Clock) -> None:
    async def run() -> bool:
        watch = asyncio.ensure_future(clock.lease.watch())
        await asyncio.sleep(0)
        clock.freeze(SESSION_S / 2)
        watch.cancel()
        return clock.lease.is_expired

    assert asyncio.run(run())


def test_the_prober_sends_heartbeats_until_the_lease_is_renewed(clock: Clock) -> None:
    requests = 0

    async def ask() -> None:
        nonlocal requests
        requests += 1
        if requests == 3:
            clock.lease.renew(clock.now_s)

    async def run() -> None:
        clock.freeze(SESSION_S)
        prober = asyncio.ensure_future(Prober(ask, clock.lease, lambda: 1.0).run())
        async with asyncio.timeout(5):
            await clock.lease.wait_until_valid()
        prober.cancel()

    asyncio.run(run())
    assert requests == 3


# Answers that renew the lease


def request_of(kind: Any) -> Any:
    return kind.__new__(kind)


def coordinator(lease: Lease, *, joining: bool = False) -> PlanCoordinator:
    made = PlanCoordinator.__new__(PlanCoordinator)
    made.lease, made.is_joining = lease, joining
    made.group_id, made.generation, made.member_id, made.coordinator_id = "group", 7, "me", None
    return made


def answer(error: Any) -> SimpleNamespace:
    return SimpleNamespace(error_code=error.errno, topics=[("events", [(0, NoError.errno), (1, error.errno)])])


@pytest.mark.parametrize(
    ("kind", "error", "joining", "holds_s"),
    [
        (HeartbeatRequest, NoError, False, SESSION_S),
        (HeartbeatRequest, RebalanceInProgressError, False, 4.0),
        (HeartbeatRequest, NoError, True, 4.0),
        (HeartbeatRequest, IllegalGenerationError, True, 0.0),
        (HeartbeatRequest, UnknownMemberIdError, False, 0.0),
        (JoinGroupRequest, NoError, True, SESSION_S),
        (JoinGroupRequest, UnknownMemberIdError, True, 0.0),
        (SyncGroupRequest, NoError, True, SESSION_S),
        (SyncGroupRequest, RebalanceInProgressError, True, 0.0),
        (OffsetCommitRequest, NoError, False, 4.0),
        (OffsetCommitRequest, IllegalGenerationError, False, 0.0),
    ],
)
def test_an_answer_renews_the_lease_from_when_its_request_was_sent(
    kind: Any, error: Any, *, joining: bool, holds_s: float, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock.pass_s(SESSION_S)  # so a rebalance may last 4 s more

    async def answered(*_: object) -> Any:
        return answer(error)

    monkeypatch.setattr(GroupCoordinator, "_send_req", answered)
    asyncio.run(coordinator(clock.lease, joining=joining)._send_req(request_of(kind)))
    clock.pass_s(holds_s)
    assert not clock.lease.is_expired
    clock.pass_s(STEP_S)
    assert clock.lease.is_expired


def test_waiting_for_a_rebalance_does_not_extend_the_lease(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    async def answered_late(*_: object) -> Any:
        clock.pass_s(SESSION_S + 1)
        return answer(NoError)

    monkeypatch.setattr(GroupCoordinator, "_send_req", answered_late)
    asyncio.run(coordinator(clock.lease, joining=True)._send_req(request_of(SyncGroupRequest)))
    assert clock.lease.is_expired


def test_a_join_is_cancelled_if_its_coordinator_answers_no_heartbeat(clock: Clock) -> None:
    """A host that vanished sends no reset: JoinGroup alone would wait as long as a rebalance may last."""
    made, closed = coordinator(clock.lease, joining=True), []

    async def send(*_: object, **__: object) -> None:
        raise RequestTimedOutError

    joining = SimpleNamespace(close=lambda reason: closed.append((reason, clock.now_s)))
    made.coordinator_id = 1
    made._client = SimpleNamespace(send=send, _conns={(1, ConnectionGroup.COORDINATION): joining})
    with pytest.raises(RequestTimedOutError):
        asyncio.run(made.probe())
    assert closed == [(CloseReason.CONNECTION_TIMEOUT, clock.now_s)]


@pytest.mark.parametrize(
    ("error", "is_out"), [(RebalanceInProgressError, False), (IllegalGenerationError, True), (NoError, False)]
)
def test_during_a_rebalance_heartbeats_use_another_connection(error: Any, is_out: bool, clock: Clock) -> None:
    """If the answer to an old generation counted as an eviction, a member would drop its new partitions."""
    made = coordinator(clock.lease, joining=True)
    groups = []

    async def send(node: int, request: Any, *, group: Any) -> Any:
        groups.append((node, group))
        return answer(error)

    made.coordinator_id, made._client = 1, SimpleNamespace(send=send)
    clock.pass_s(SESSION_S)
    asyncio.run(made.probe())
    clock.pass_s(STEP_S)
    assert clock.lease.is_expired == is_out
    assert (made.generation, groups) == (7, [(1, ConnectionGroup.DEFAULT)])


async def test_a_member_whose_rebalance_was_overtaken_by_the_next_one_joins_that_one_without_a_pause():
    hour_ms = 3_600_000
    async with Group() as group:
        coordinator = group.coordinator
        coordinator.__class__ = PlanCoordinator
        coordinator.lease, coordinator._retry_backoff_ms = Lease(SESSION_S, REBALANCE_S), hour_ms
        overtaken = SimpleNamespace(error_code=RebalanceInProgressError.errno)
        group.wire.answers = {"JoinGroup": [joined(leader="other")], "SyncGroup": [overtaken]}
        joining = asyncio.ensure_future(coordinator._do_rejoin_group(group.state.subscription))
        await take_turns()
        assert joining.done(), "the others wait for this member while it pauses"
        assert not joining.result()
        assert coordinator.need_rejoin(group.state.subscription)
        assert coordinator._retry_backoff_ms == hour_ms, "other errors are retried with a pause"
