"""Facts of aiokafka's joins and commits that services/consumer relies on. After an upgrade the broken fact is named."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment
from aiokafka.errors import GroupLoadInProgressError, IllegalGenerationError, RebalanceInProgressError
from aiokafka.producer.sender import SendProduceReqHandler
from aiokafka.producer.transaction_manager import TransactionManager
from aiokafka.structs import OffsetAndMetadata
from aiokafka_bench import ONE, TOPIC, ZERO, Checks, Group, joined, synced

CHECKS = Checks()


# Joining


@CHECKS.of("a join learns its generation before the leader decides")
async def generation_first() -> None:
    async with Group() as g:
        generations = []
        share = ConsumerProtocolMemberAssignment(0, [], b"")
        g.assignor.assign = lambda cluster, members: generations.append(g.coordinator.generation) or {"me": share}
        g.wire.answers = {"JoinGroup": [joined()], "SyncGroup": [synced()]}
        assert await g.rebalance().perform_group_join()
        assert generations == [8]


@CHECKS.of("a rejoin requested while joining is lost at SyncGroup")
async def forgotten() -> None:
    async with Group() as g:
        at_sync = []
        g.wire.at = {
            "JoinGroup": g.coordinator.request_rejoin,
            "SyncGroup": lambda: at_sync.append(g.coordinator._rejoin_needed_fut.done()),
        }
        g.wire.answers = {"JoinGroup": [joined(leader="other")], "SyncGroup": [synced()]}
        await g.rebalance().perform_group_join()
        assert at_sync == [False]
        assert not g.coordinator._rejoin_needed_fut.done()


@CHECKS.of("before the join is called once per sequence of attempts")
async def prepared_once() -> None:
    async with Group() as g:
        prepared = []

        async def prepare(previous: Any) -> None:
            prepared.append(previous)

        g.coordinator._on_join_prepare = prepare
        g.wire.answers = {
            "JoinGroup": [joined(GroupLoadInProgressError), joined(leader="other"), joined(leader="other")],
            "SyncGroup": [synced(), synced()],
        }
        subscription = g.state.subscription
        assert await g.coordinator.ensure_active_group(subscription, None) is None
        assert await g.coordinator.ensure_active_group(subscription, None) is subscription.assignment
        assert prepared == [None]
        await asyncio.sleep(0)  # heartbeats have started
        await g.coordinator.ensure_active_group(subscription, None)
        assert prepared == [None, None]


@CHECKS.of("heartbeats stop before JoinGroup and start after the rebalance")
async def heartbeats_rest() -> None:
    async with Group() as g:
        beating: dict[str, bool] = {}

        async def complete(*_: Any) -> None:
            beating["handing over"] = g.coordinator._heartbeat_task is not None
            g.state.assign_from_subscribed({ZERO})

        g.coordinator._on_join_complete = complete
        g.coordinator._start_heartbeat_task()
        await asyncio.sleep(0)
        g.wire.at = {"JoinGroup": lambda: beating.update(joining=g.coordinator._heartbeat_task is not None)}
        g.wire.answers = {"JoinGroup": [joined(leader="other")], "SyncGroup": [synced()]}
        await g.coordinator.ensure_active_group(g.state.subscription, None)
        assert beating == {"joining": False, "handing over": False}
        assert g.coordinator._heartbeat_task is not None


@CHECKS.of("a heartbeat during a rebalance requests a rejoin and counts as answered")
async def heartbeat() -> None:
    async with Group() as g:
        g.wire.answers = {"Heartbeat": [SimpleNamespace(error_code=RebalanceInProgressError.errno)]}
        assert await g.coordinator._do_heartbeat() is True
        assert g.coordinator._rejoin_needed_fut.done()
        assert (g.coordinator.generation, g.coordinator.member_id) == (7, "me")


@CHECKS.of("a join without a subscription ends")
async def given_up() -> None:
    async with Group() as g:
        g.wire.at = {"JoinGroup": g.state.unsubscribe}
        g.wire.answers = {"JoinGroup": [joined()]}
        assert await g.rebalance().perform_group_join() is None
        assert g.kinds == ["JoinGroup"]


# Commits


def committed(error: Any = None) -> SimpleNamespace:
    return SimpleNamespace(topics=[(TOPIC, [(0, error.errno if error else 0)])])


@CHECKS.of("a commit carries the generation of the moment it is sent")
async def generation_of_the_moment() -> None:
    async with Group() as g:
        g.wire.answers = {"OffsetCommit": [committed()]}
        sending = g.coordinator._do_commit_offsets(None, {ZERO: OffsetAndMetadata(5, "")})
        g.coordinator.generation = 9
        await sending
        ((_, request),) = g.wire.sent
        assert request.consumer_group_generation_id == 9
        assert request.consumer_id == "me"


@CHECKS.of("a commit ignores the assignment")
async def no_assignment() -> None:
    async with Group() as g:
        g.wire.answers = {"OffsetCommit": [committed()]}
        await g.coordinator._do_commit_offsets(None, {ZERO: OffsetAndMetadata(5, "")})
        ((_, request),) = g.wire.sent
        assert request.topics == [(TOPIC, [(0, 5, "")])]


@CHECKS.of("a commit of an old generation discards the membership")
async def thrown_away() -> None:
    async with Group() as g:
        g.wire.answers = {"OffsetCommit": [committed(IllegalGenerationError), committed(RebalanceInProgressError)]}
        with pytest.raises(IllegalGenerationError):
            await g.coordinator._do_commit_offsets(None, {ZERO: OffsetAndMetadata(5, "")})
        assert (g.coordinator.generation, g.coordinator.member_id) == (-1, "")


@CHECKS.of("an abort is sent only if the manager knows partitions")
async def aborted() -> None:
    def refused() -> TransactionManager:
        manager = TransactionManager("one", 1000)
        manager.set_pid_and_epoch(1, 0)
        manager.begin_transaction()
        manager.maybe_add_partition_to_txn(ZERO)
        manager.partition_added(ZERO)
        manager.add_offsets_to_txn({ONE: OffsetAndMetadata(1, "")}, "group")
        return manager

    with_error, forgetful = refused(), refused()
    with_error._pending_txn_offsets.popleft()
    with_error.aborting_transaction()
    assert not with_error.is_empty_transaction()
    forgetful._pending_txn_offsets[0][2].add_done_callback(lambda asked: asked.exception())
    forgetful.error_transaction(IllegalGenerationError())
    forgetful.wait_for_transaction_end().exception()
    forgetful.aborting_transaction()
    assert forgetful.is_empty_transaction(), "what was written would be committed with the next transaction"


# Records


@CHECKS.of("an idempotent producer never gives up on a batch")
async def never_gives_up() -> None:
    expired = SimpleNamespace(expired=lambda: True)
    handler = SimpleNamespace(_sender=SimpleNamespace(_txn_manager=object()))
    assert SendProduceReqHandler._can_retry(handler, SimpleNamespace(retriable=True), expired)
    handler._sender._txn_manager = None
    assert not SendProduceReqHandler._can_retry(handler, SimpleNamespace(retriable=True), expired)


@pytest.mark.parametrize("name", CHECKS)
def test_aiokafka_behaves_as_the_consumer_relies_on(name):
    asyncio.run(CHECKS[name]())
