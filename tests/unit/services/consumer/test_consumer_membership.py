"""When a replica joins and rejoins: the plan decides; and what happens when the group has lost it."""

import asyncio
from collections.abc import Callable, Sequence

import pytest
from aiokafka.errors import GroupAuthorizationFailedError
from consumer_fakes import MembershipStory as Story
from consumer_fakes import eventually

from contracts.plan import Eviction
from contracts.progress import ReplicaState
from services.consumer import membership as membership_module
from services.consumer.interface import Calls, Listeners

# Joining


@pytest.mark.parametrize("eager", [False, True])
async def test_without_any_plan_a_replica_joins(eager):
    s = Story(eager=eager)
    await s.me._obey(None)
    assert s.since() == ["join"]
    await s.round(1, 0, 0, 1)
    assert s.me.state is ReplicaState.MEMBER
    assert (s.me.member_id, s.me.generation) == ("me-1", 1)


async def test_a_replica_that_no_plan_names_joins_warm_and_a_plan_that_names_it_makes_it_a_member():
    s = Story()
    await s.plan(1, "other")
    assert s.since() == ["join"]
    await s.round(1, 1)
    assert s.me.state is ReplicaState.WARM
    assert s.since() == [], "it stays in the group, owning nothing"
    await s.plan(2, "other", "me")
    assert s.since() == ["rejoin"]
    await s.round(2, 2, 0)
    assert s.me.state is ReplicaState.MEMBER


async def test_eager_a_replica_that_no_plan_names_stays_outside_for_its_join_would_stop_everybody():
    s = Story(eager=True)
    await s.plan(1, "other")
    assert s.since() == []
    assert (s.me.member_id, s.me.generation) == ("", -1)
    await s.plan(2, "other", "me")
    assert s.since() == ["join"]


@pytest.mark.parametrize(("empty", "asked"), [(True, ["join"]), (False, [])])
async def test_eager_a_replica_that_was_never_named_serves_only_where_nobody_else_does(empty, asked):
    s = Story(eager=True)
    await s.plan(1, "other")
    s.group.empty = empty
    await s.me._help_out()
    assert s.since() == asked


# Plans


async def test_a_new_epoch_makes_a_member_rejoin_once():
    s = Story()
    await s.plan(1, "me")
    await s.round(1, 1, 0, 1)
    s.since()
    await s.plan(2, "me")
    assert s.since() == ["rejoin"]
    await s.round(2, 2, 0, 1)
    await s.plan(2, "me")
    assert s.since() == [], "the assignment is from this plan already"


async def test_while_joining_a_new_plan_does_not_ask_for_another_round_but_its_end_compares_the_epochs():
    s = Story()
    await s.plan(1, "me")
    await s.round(1, 1, 0)
    s.since()
    s.group.joining = True
    await s.plan(2, "me")
    assert s.since() == []
    s.group.joining = False
    await s.round(2, 1, 0)
    assert s.since() == []
    await asyncio.wait_for(s.plans.news.wait(), 1)
    await s.me._obey(s.plans.newest)
    assert s.since() == ["rejoin"]


async def test_a_round_that_withheld_something_is_followed_by_another_at_once():
    s = Story()
    await s.plan(1, "me")
    s.since()
    await s.round(1, 1, again=True)
    assert s.since() == ["rejoin"]
    assert s.me.state is ReplicaState.MEMBER, "it is named, and its share is on the way"


async def test_each_eviction_is_sent_once_and_before_rejoining():
    s = Story()
    await s.plan(1, "me", "dead")
    await s.round(1, 1, 0)
    s.since()
    dead = (Eviction(replica="dead", member_id="dead-1", incarnation="x"),)
    await s.plan(2, "me", evictions=dead)
    assert s.since() == ["evict dead-1", "rejoin"]
    await s.plan(3, "me", evictions=dead)
    assert s.since() == ["rejoin"]


async def test_the_leader_rejoins_when_the_grace_of_an_absent_replica_is_over(monkeypatch):
    s = Story()
    timers: list[tuple[float, Callable[[], None]]] = []
    monkeypatch.setattr(asyncio.get_running_loop(), "call_later", lambda pause_s, what: timers.append((pause_s, what)))
    await s.plan(1, "me", "absent", grace_s=5.0)
    s.assignor._awaited(s.plans.newest, {"me"})  # what leading a round does
    s.now_s += 2.0
    await s.round(1, 1, 0)
    s.since()
    ((pause_s, then),) = timers
    assert pause_s == pytest.approx(3.0 + membership_module.GRACE_MARGIN_S)
    then()
    assert s.since() == ["rejoin"]


# Lost


async def test_a_replica_that_the_group_has_lost_drops_everything_tells_it_and_serves_again_when_it_is_back():
    s = Story()
    await s.me._obey(None)
    await s.round(1, 0, 0, 1)
    s.since()
    s.me.lost()
    assert s.queues.held == frozenset()
    await eventually(lambda: s.group.asked == ["lost [0, 1]"])
    await s.round(5, 0, 1)
    assert s.queues.serving == (1,)
    assert s.me.state is ReplicaState.MEMBER


@pytest.mark.parametrize("listener", ["on_partitions_taken", "on_partitions_released", "on_partitions_lost"])
async def test_a_listener_that_raises_ends_the_replica_instead_of_leaving_it_idle(listener):
    async def raises(partitions: Sequence[int]) -> None:
        raise LookupError("no state for them")

    s = Story()
    s.handover.calls = Calls(Listeners(**{listener: raises}))
    await s.me._obey(None)
    if listener == "on_partitions_lost":
        await s.round(1, 0, 0)
        s.me.lost()
    else:
        s.queues.open({9: 0}, 1)
        s.handover.calls._known.add(9)
        with pytest.raises(LookupError):
            await s.round(1, 0, 0)
    await eventually(s.failed.done)
    assert isinstance(s.failed.exception(), LookupError)


async def test_eager_a_stop_that_fails_ends_the_replica():
    s = Story(eager=True)
    await s.me._obey(None)
    await s.round(1, 0, 0)
    s.serve(0)
    s.group.answers = [GroupAuthorizationFailedError("group")]
    await s.me.before_round()
    assert isinstance(s.failed.exception(), GroupAuthorizationFailedError)
