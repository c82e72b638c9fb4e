"""When a replica joins, rejoins and leaves: told as stories, with a group that answers at once."""

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest

from contracts.plan import Eviction, PlanRecord
from contracts.progress import ReplicaState
from services.consumer.assignor import PlanAssignor
from services.consumer.inbox import Inbox
from services.consumer.ledger import Ledger
from services.consumer.membership import Membership


class Group:
    """Coordinator and consumer in one: notes what the membership asks of them."""

    def __init__(self) -> None:
        self.member_id, self.generation, self.joining = "", -1, False
        self.empty = False
        self.asked: list[str] = []
        self._coordinator = self

    def subscribe(self, topics: list[str], listener: Any) -> None:
        self.asked.append("join")

    def seek(self, at: Any, offset: int) -> None:
        self.asked.append(f"seek {at.partition} {offset}")

    def request_rejoin(self) -> None:
        self.asked.append("rejoin")

    async def leave(self) -> None:
        self.asked.append("leave")
        self.member_id, self.generation = "", -1

    async def evict(self, member_id: str) -> None:
        self.asked.append(f"evict {member_id}")

    async def ensure_coordinator_known(self) -> None: ...

    async def group_is_empty(self) -> bool:
        return self.empty


class Work:
    """Worker and committer in one: notes the order of pause and commit."""

    def __init__(self, asked: list[str]) -> None:
        self.asked = asked
        self.inbox = Inbox()

    async def pause(self) -> None:
        self.inbox.close()
        self.asked.append("pause")

    async def close(self) -> bool:
        self.asked.append("commit")
        return True

    def open(self, generation: int) -> Ledger:
        return Ledger()

    def resume(self, partitions: tuple[int, ...], kept: set[int], ledger: Ledger, epoch: int) -> None:
        self.inbox.open(partitions, kept)
        self.asked.append(f"serve {list(partitions)}")


class Story:
    """A replica named `me`, in a running event loop."""

    def __init__(self) -> None:
        self.group = Group()
        self.asked = self.group.asked
        self.plans = SimpleNamespace(newest=None, news=asyncio.Event())
        self.assignor = PlanAssignor("me", "1", lambda: self.plans.newest)
        self.work = Work(self.asked)
        clients = SimpleNamespace(
            input_topic="requests",
            consumer=self.group,
            coordinator=self.group,
            assignor=self.assignor,
            plans=self.plans,
            failed=asyncio.get_running_loop().create_future(),
        )
        self.me = Membership(replica="me", clients=clients, worker=self.work, committer=self.work, changed=lambda: None)  # type: ignore[arg-type]

    async def plan(self, epoch: int, *replicas: str, evictions: tuple[Eviction, ...] = ()) -> None:
        self.plans.newest = PlanRecord(
            epoch=epoch, at_us=0, replicas=replicas, assignment=None, reason="", evictions=evictions
        )
        await self.me._obey(self.plans.newest)

    async def round(self, generation: int, epoch: int, *partitions: int, member_id: str = "me-1") -> None:
        """One rebalance, as aiokafka runs it."""
        await self.me.on_partitions_revoked(set())
        self.group.member_id, self.group.generation = member_id, generation
        self.assignor.owned, self.assignor.epoch = partitions, epoch
        await self.me.on_partitions_assigned(set())

    def since(self) -> list[str]:
        asked = list(self.asked)
        self.asked.clear()
        return asked


def told(story: Callable[[Story], Awaitable[None]]) -> None:
    async def tell() -> None:
        await story(Story())

    asyncio.run(tell())


def test_without_any_plan_a_replica_joins():
    async def story(s: Story) -> None:
        await s.me._obey(None)
        assert s.since() == ["join"]

    told(story)


def test_a_replica_that_no_plan_names_stays_warm_until_one_does():
    async def story(s: Story) -> None:
        await s.plan(1, "other")
        assert s.since() == []
        assert s.me.state is ReplicaState.WARM
        await s.plan(2, "other", "me")
        assert s.since() == ["join"]

    told(story)


def test_a_new_epoch_makes_a_member_rejoin_once():
    async def story(s: Story) -> None:
        await s.plan(1, "me")
        await s.round(1, 1, 0, 1)
        s.since()
        await s.plan(2, "me")
        assert s.since() == ["rejoin"]
        await s.round(2, 2, 0)
        await s.plan(2, "me")
        assert "rejoin" not in s.since(), "the assignment is from this plan already"

    told(story)


def test_partitions_are_committed_before_they_are_given_away_and_kept_ones_are_not_fetched_again():
    async def story(s: Story) -> None:
        await s.plan(1, "me")
        await s.round(1, 1, 0, 1)
        s.work.inbox.put(0, [SimpleNamespace(offset=4, timestamp=0)], 1)
        s.since()
        await s.round(2, 1, 0)
        assert s.since() == ["pause", "commit", "seek 0 5", "serve [0]"]

    told(story)


@pytest.mark.parametrize(("generation", "member_id"), [(3, "me-1"), (2, "me-2")])
def test_nothing_is_kept_when_another_may_have_owned_it_meanwhile(generation, member_id):
    async def story(s: Story) -> None:
        await s.plan(1, "me")
        await s.round(1, 1, 0)
        s.work.inbox.put(0, [SimpleNamespace(offset=4, timestamp=0)], 1)
        s.since()
        await s.round(generation, 1, 0, member_id=member_id)
        assert s.since() == ["pause", "commit", "serve [0]"]

    told(story)


def test_a_member_that_the_plan_drops_gives_back_what_it_holds_and_leaves_at_once():
    async def story(s: Story) -> None:
        await s.plan(1, "me", "other")
        await s.round(1, 1, 0, 1)
        s.since()
        await s.plan(2, "other")
        assert s.since() == ["pause", "commit", "leave"]
        assert s.me.state is ReplicaState.DRAINED
        assert s.assignor.owned == ()
        await s.plan(3, "other", "me")
        assert s.since() == ["join"], "it is still warm, and may be named again"

    told(story)


def test_a_rebalance_that_ends_while_leaving_hands_out_nothing():
    async def story(s: Story) -> None:
        await s.plan(1, "me")
        await s.round(1, 1, 0)
        await s.plan(2, "other")
        s.since()
        await s.me.on_partitions_assigned(set())
        assert s.since() == []

    told(story)


def test_a_leader_behind_our_plan_makes_us_look_again():
    async def story(s: Story) -> None:
        await s.plan(2, "me")
        await s.round(1, 1, 0)
        assert s.me.state is ReplicaState.MEMBER
        await asyncio.wait_for(s.plans.news.wait(), 1)
        s.since()
        await s.me._obey(s.plans.newest)
        assert s.since() == ["rejoin"]

    told(story)


def test_while_joining_a_new_plan_does_not_ask_for_another_round():
    async def story(s: Story) -> None:
        await s.plan(1, "me")
        await s.round(1, 1, 0)
        s.since()
        s.group.joining = True
        await s.plan(2, "me")
        assert s.since() == []

    told(story)


def test_each_eviction_is_sent_once_before_rejoining():
    async def story(s: Story) -> None:
        await s.plan(1, "me", "dead")
        await s.round(1, 1, 0)
        s.since()
        dead = (Eviction(replica="dead", member_id="dead-1", incarnation="x"),)
        await s.plan(2, "me", evictions=dead)
        assert s.since() == ["evict dead-1", "rejoin"]
        await s.plan(3, "me", evictions=dead)
        assert s.since() == ["rejoin"]

    told(story)


def test_a_replica_that_stops_leaves_and_never_joins_again():
    async def story(s: Story) -> None:
        await s.me._obey(None)
        await s.round(1, 0, 0)
        s.since()
        await s.me.leave(ReplicaState.STOPPING)
        assert s.since() == ["pause", "commit", "leave"]
        await s.plan(1, "me")
        assert s.since() == []

    told(story)


@pytest.mark.parametrize(("empty", "asked"), [(True, ["join"]), (False, [])])
def test_a_replica_that_was_never_named_serves_only_where_nobody_else_does(empty, asked):
    async def story(s: Story) -> None:
        await s.plan(1, "other")
        s.group.empty = empty
        await s.me._help_out()
        assert s.since() == asked

    told(story)


def test_a_hook_that_fails_ends_the_replica_instead_of_leaving_it_idle():
    async def story(s: Story) -> None:
        await s.plan(1, "me")
        s.work.close = None  # type: ignore[assignment,method-assign]  # calling it raises
        await s.me.on_partitions_revoked(set())
        assert isinstance(s.me._failed.exception(), TypeError)

    told(story)
