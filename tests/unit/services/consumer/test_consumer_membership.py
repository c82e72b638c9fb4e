"""When a replica joins and rejoins, by the plan, and what it does after a removal by the group."""

import asyncio
from collections.abc import Callable, Sequence

import pytest
from aiokafka.errors import GroupAuthorizationFailedError
from consumer_fakes import MembershipHarness as Harness
from consumer_fakes import eventually

from contracts.plan import Eviction
from contracts.progress import ReplicaState
from services.consumer import membership as membership_module
from services.consumer.interface import ListenerCalls, Listeners

# Joining


@pytest.mark.parametrize("is_eager", [False, True])
async def test_a_replica_joins_without_any_plan(is_eager):
    s = Harness(is_eager=is_eager)
    await s.me._follow_plan(None)
    assert s.take_log() == ["join"]
    await s.rebalance(1, 0, 0, 1)
    assert s.me.state is ReplicaState.MEMBER
    assert (s.me.member_id, s.me.generation) == ("me-1", 1)


async def test_an_unnamed_replica_joins_warm_and_becomes_a_member_once_a_plan_names_it():
    s = Harness()
    await s.plan(1, "other")
    assert s.take_log() == ["join"]
    await s.rebalance(1, 1)
    assert s.me.state is ReplicaState.WARM
    assert s.take_log() == [], "it stays in the group without partitions"
    await s.plan(2, "other", "me")
    assert s.take_log() == ["rejoin"]
    await s.rebalance(2, 2, 0)
    assert s.me.state is ReplicaState.MEMBER


async def test_an_eager_replica_joins_only_once_a_plan_names_it():
    s = Harness(is_eager=True)
    await s.plan(1, "other")
    assert s.take_log() == []
    assert (s.me.member_id, s.me.generation) == ("", -1)
    await s.plan(2, "other", "me")
    assert s.take_log() == ["join"]


@pytest.mark.parametrize(("is_empty", "calls"), [(True, ["join"]), (False, [])])
async def test_an_unnamed_eager_replica_joins_only_an_empty_group(is_empty, calls):
    s = Harness(is_eager=True)
    await s.plan(1, "other")
    s.group.is_empty = is_empty
    await s.me._join_if_empty()
    assert s.take_log() == calls


# Plans


async def test_a_new_epoch_makes_a_member_rejoin_once():
    s = Harness()
    await s.plan(1, "me")
    await s.rebalance(1, 1, 0, 1)
    s.take_log()
    await s.plan(2, "me")
    assert s.take_log() == ["rejoin"]
    await s.rebalance(2, 2, 0, 1)
    await s.plan(2, "me")
    assert s.take_log() == [], "the assignment is from this plan already"


async def test_a_plan_that_arrives_during_a_join_causes_a_rejoin_afterwards():
    s = Harness()
    await s.plan(1, "me")
    await s.rebalance(1, 1, 0)
    s.take_log()
    s.group.is_joining = True
    await s.plan(2, "me")
    assert s.take_log() == []
    s.group.is_joining = False
    await s.rebalance(2, 1, 0)
    assert s.take_log() == []
    await asyncio.wait_for(s.plans.news.wait(), 1)
    await s.me._follow_plan(s.plans.newest_plan)
    assert s.take_log() == ["rejoin"]


async def test_pending_revocations_cause_a_rejoin_at_once():
    s = Harness()
    await s.plan(1, "me")
    s.take_log()
    await s.rebalance(1, 1, rejoin=True)
    assert s.take_log() == ["rejoin"]
    assert s.me.state is ReplicaState.MEMBER, "it is named, and its partitions are granted next"


async def test_each_eviction_is_sent_once_and_the_rejoin_does_not_wait_for_its_answer():
    s = Harness()
    await s.plan(1, "me", "dead")
    await s.rebalance(1, 1, 0)
    s.take_log()
    dead = (Eviction(replica="dead", member_id="dead-1", incarnation="x"),)
    await s.plan(2, "me", evictions=dead)
    await asyncio.sleep(0)
    assert s.take_log() == ["rejoin", "evict dead-1"]
    await s.plan(3, "me", evictions=dead)
    await asyncio.sleep(0)
    assert s.take_log() == ["rejoin"]


async def test_the_leader_rejoins_when_the_grace_of_an_absent_replica_is_over(monkeypatch):
    s = Harness()
    timers: list[tuple[float, Callable[[], None]]] = []
    monkeypatch.setattr(asyncio.get_running_loop(), "call_later", lambda pause_s, what: timers.append((pause_s, what)))
    await s.plan(1, "me", "absent", grace_s=5.0)
    s.assignor._absent_in_grace(s.plans.newest_plan, {"me"})  # a leader calls it in each rebalance
    s.now_s += 2.0
    await s.rebalance(1, 1, 0)
    s.take_log()
    ((pause_s, then),) = timers
    assert pause_s == pytest.approx(3.0 + membership_module.GRACE_MARGIN_S)
    then()
    assert s.take_log() == ["rejoin"]


# A removed member


async def test_a_removed_replica_drops_its_partitions_and_serves_again_after_a_rejoin():
    s = Harness()
    await s.me._follow_plan(None)
    await s.rebalance(1, 0, 0, 1)
    s.take_log()
    s.me.on_membership_lost()
    assert s.queues.owned_partitions == frozenset()
    await eventually(lambda: s.group.log == ["lost [0, 1]"])
    await s.rebalance(5, 0, 1)
    assert s.queues.served_partitions == (1,)
    assert s.me.state is ReplicaState.MEMBER


@pytest.mark.parametrize("listener", ["on_partitions_taken", "on_partitions_released", "on_partitions_lost"])
async def test_a_listener_that_raises_ends_the_replica(listener):
    async def raises(partitions: Sequence[int]) -> None:
        raise LookupError("no state for them")

    s = Harness()
    s.handover.calls = ListenerCalls(Listeners(**{listener: raises}))
    await s.me._follow_plan(None)
    if listener == "on_partitions_lost":
        await s.rebalance(1, 0, 0)
        s.me.on_membership_lost()
    else:
        s.queues.open({9: 0}, 1)
        s.handover.calls._taken_partitions.add(9)
        with pytest.raises(LookupError):
            await s.rebalance(1, 0, 0)
    await eventually(s.failure.done)
    assert isinstance(s.failure.exception(), LookupError)


async def test_an_eager_replica_ends_if_its_stop_fails():
    s = Harness(is_eager=True)
    await s.me._follow_plan(None)
    await s.rebalance(1, 0, 0)
    s.serve(0)
    s.group.answers = [GroupAuthorizationFailedError("group")]
    await s.me.before_rebalance()
    assert isinstance(s.failure.exception(), GroupAuthorizationFailedError)
