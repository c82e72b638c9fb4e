"""How a plan drains a replica, and how a replica stops."""

import asyncio

import pytest
from consumer_fakes import TOPIC, eventually
from consumer_fakes import MembershipHarness as Harness

from contracts.progress import ReplicaState


async def alone(*partitions: int, served: int = 0, is_eager: bool = False) -> Harness:
    """Return a replica that owns partitions without a plan, and has served events of partition 0."""
    s = Harness(is_eager=is_eager)
    await s.me._follow_plan(None)
    await s.rebalance(1, 0, *partitions)
    if served:
        s.serve(0, served)
    s.take_log()
    return s


# Drained by a plan


async def test_a_member_that_the_plan_drops_hands_over_its_partitions_and_leaves():
    s = Harness()
    await s.plan(1, "me", "other")
    await s.rebalance(1, 1, 0, 1)
    s.serve(0, 3)
    await s.plan(2, "other")
    s.take_log()
    await s.rebalance(2, 2, rejoin=True)
    assert s.take_log() == ["commit {0: 3}", "released [0, 1]", "rejoin"]
    assert s.assignor.handed_over[0].offset == 3
    assert s.me.state is ReplicaState.MEMBER, "the offset is handed over in the next rebalance"

    await s.rebalance(3, 2)
    assert s.take_log() == ["leave"]
    assert s.me.state is ReplicaState.DRAINED
    assert (s.me.member_id, s.me.generation) == ("", -1)
    await s.plan(3, "other", "me")
    assert s.take_log() == ["join"], "a later plan may name it again"


async def test_an_eager_member_that_the_plan_drops_leaves_at_once():
    s = Harness(is_eager=True)
    await s.plan(1, "me", "other")
    await s.rebalance(1, 1, 0, 1)
    s.serve(0)
    s.take_log()
    await s.plan(2, "other")
    assert s.take_log() == ["commit {0: 1}", "released [0, 1]", "leave"]
    assert s.me.state is ReplicaState.DRAINED


# Stopping


async def test_a_stopping_replica_serves_until_others_have_taken_over():
    s = Harness()
    await s.plan(1, "me", "other")
    await s.rebalance(1, 1, 0, 1)
    s.take_log()
    stopping = asyncio.ensure_future(s.me.drain(5.0))
    await eventually(lambda: s.group.log == ["rejoin"])
    assert s.me.state is ReplicaState.DRAINING
    assert s.queues.served_partitions == (0, 1)
    s.serve(0)
    s.take_log()

    await s.rebalance(2, 1, rejoin=True)
    assert s.take_log() == ["commit {0: 1}", "released [0, 1]", "rejoin"]
    assert not stopping.done()
    await s.rebalance(3, 1)
    await asyncio.wait_for(stopping, 1)
    assert s.take_log() == ["leave"]
    assert s.me.state is ReplicaState.STOPPING


async def test_a_stopping_replica_leaves_if_no_other_can_take_over():
    s = await alone(0)
    stopping = asyncio.ensure_future(s.me.drain(5.0))
    await eventually(lambda: s.group.log == ["rejoin"])
    await s.rebalance(2, 0, 0)
    await asyncio.wait_for(stopping, 1)
    assert s.take_log() == ["rejoin", "released [0]", "leave"]


async def test_a_drain_during_a_rebalance_is_announced_in_the_next_one():
    s = Harness()
    await s.plan(1, "me", "other")
    await s.rebalance(1, 1, 0)
    s.assignor.metadata([TOPIC])  # its JoinGroup is under way
    stopping = asyncio.ensure_future(s.me.drain(5.0))
    await eventually(lambda: s.me.state is ReplicaState.DRAINING)
    s.take_log()
    s.group.generation = 2
    await s.me.apply_assignment(frozenset({0}), 2)
    assert s.take_log() == ["rejoin"]
    assert not stopping.done(), "the drain is not announced yet"
    await s.rebalance(3, 1)
    await asyncio.wait_for(stopping, 1)


async def test_a_stopping_replica_leaves_at_the_deadline_after_a_commit():
    s = await alone(0, served=2)
    await s.me.drain(0.01)
    assert s.take_log() == ["rejoin", "commit {0: 2}", "released [0]", "leave"]


async def test_an_abandoning_replica_gets_no_partitions_from_a_late_rebalance():
    s = await alone(0, served=2)
    await s.me.abandon()
    assert s.take_log() == ["lost [0]"]
    assert s.me.state is ReplicaState.STOPPING
    await s.me.apply_assignment(frozenset({0, 1}), 2)
    assert s.queues.owned_partitions == frozenset()


@pytest.mark.parametrize("is_eager", [True, False])
async def test_a_replica_without_partitions_or_an_eager_one_leaves_at_once(is_eager):
    s = await alone(*([0] if is_eager else []), is_eager=is_eager)
    await asyncio.wait_for(s.me.drain(60.0), 1)
    assert s.take_log() == (["released [0]", "leave"] if is_eager else ["leave"])


async def test_a_stopping_replica_never_joins_again():
    s = await alone()
    await s.me.leave(ReplicaState.STOPPING)
    s.take_log()
    await s.plan(1, "me")
    await s.me._join_if_empty()
    assert s.take_log() == []
