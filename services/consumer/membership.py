"""Decides when a replica joins, rejoins and leaves the group, by the plan. Kafka's group protocol carries it out."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from contracts.plan import Eviction, PlanRecord
from contracts.progress import ReplicaState
from services.consumer.assignor import PlanAssignor
from services.consumer.coordinator import PlanCoordinator
from services.consumer.handover import Handover
from services.consumer.plan_reader import PlanReader

log = logging.getLogger(__name__)

UNNAMED_WAIT_S: Final = 10.0
"""How long a replica that no plan names waits before it checks whether the group is empty, and then joins it."""
REJOIN_PAUSES_S: Final = (0.005, 0.05, 0.1, 0.2, 0.5, 1.0)
"""Pauses before each rejoin while the leader uses an older plan. It usually reads the newer plan soon."""
GRACE_MARGIN_S: Final = 0.05  # added to the grace of an absent replica, so that it is surely over
LINGER_S: Final = 0.25
"""How long a replica without partitions stays a member before it leaves. Leaving makes all members join again, so the
others should have fetched their new partitions by then."""


@dataclass(slots=True, kw_only=True)
class Membership:
    """Joins, rejoins and leaves the group. The coordinator calls it before and after each rebalance."""

    replica: str
    subscribe: Callable[[], None]
    coordinator: PlanCoordinator
    assignor: PlanAssignor
    handover: Handover
    plans: PlanReader
    on_change: Callable[[], None]
    """Called when the state, or the owned partitions, may have changed."""
    on_rebalance: Callable[[], None]
    """Called after each rebalance."""
    failure: "asyncio.Future[None]"
    """Gets the first error that ends the replica."""
    end_transaction: Callable[[Eviction], Coroutine[Any, Any, None]] | None = None
    """Ends the open transaction of a dead replica. It must not raise."""
    linger_s: float = LINGER_S
    state: ReplicaState = ReplicaState.WARM
    _leave_lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    _drained: asyncio.Event = field(default_factory=asyncio.Event)
    _tasks: "set[asyncio.Future[None]]" = field(default_factory=set)
    _is_subscribed: bool = False
    _evicted_members: set[str] = field(default_factory=set)
    _stale_rebalances: int = 0
    """Consecutive rebalances in which the leader used an older plan."""

    @property
    def member_id(self) -> str:
        """The id that the group gave this member. Empty: it is not a member."""
        return str(self.coordinator.member_id) if self._is_subscribed else ""

    @property
    def generation(self) -> int:
        """The group's generation. -1: this replica is not a member."""
        return int(self.coordinator.generation) if self._is_subscribed else -1

    async def run(self) -> None:
        """Follow plans until cancelled."""
        await self._follow_plan(self.plans.newest_plan)
        while True:
            try:
                async with asyncio.timeout(UNNAMED_WAIT_S):
                    await self.plans.news.wait()
            except TimeoutError:
                await self._join_if_empty()
                continue
            self.plans.news.clear()
            await self._follow_plan(self.plans.newest_plan)

    async def drain(self, drain_s: float) -> None:
        """Serve until others have taken over all partitions, for `drain_s` seconds at most. Then leave the group.

        Eager: leave at once. To drain and then leave takes two rebalances, and each would stop all members.
        """
        owned = self.handover.queues.owned_partitions
        if owned and not self.handover.is_eager and self.state is not ReplicaState.STOPPING:
            self.state, self.assignor.is_draining = ReplicaState.DRAINING, True
            self.on_change()
            self._drained.clear()
            self.coordinator.request_rejoin()
            try:
                async with asyncio.timeout(drain_s):
                    await self._drained.wait()
                if self.assignor.last_assignment.members > 1:
                    await asyncio.sleep(self.linger_s)
            except TimeoutError:
                log.warning("No other replica took over within %g s; leaving anyway", drain_s)
        await self.leave(ReplicaState.STOPPING)

    async def leave(self, state: ReplicaState) -> None:
        """Finish the events in flight, commit and leave the group. state: the replica's state afterwards."""
        async with self._leave_lock:  # the replica stops only after a leave in progress
            if self._is_subscribed:
                self._is_subscribed = False  # a rebalance in progress assigns nothing from here on
                await self.handover.give_up_all(self.handover.max_release_s)
                await self.coordinator.leave()
            self.assignor.forget()
        self.state = state
        self.on_change()

    async def abandon(self) -> None:
        """Stop without leaving the group, which cannot be reached."""
        self._is_subscribed = False
        self.state = ReplicaState.STOPPING
        await self.handover.abandon()

    async def before_rebalance(self) -> None:
        """Stop serving, if the group uses the eager protocol."""
        try:
            if self.handover.is_eager and self._is_subscribed:
                await self.handover.stop_serving()
        except Exception as error:  # aiokafka would log it and keep a replica that serves nothing
            self._fail(error)

    async def apply_assignment(self, partitions: frozenset[int], generation: int) -> None:
        """Serve the assigned partitions, and rejoin if another rebalance is needed."""
        async with self._leave_lock:
            if not self._is_subscribed or generation != self.coordinator.generation:  # left, or joined again, meanwhile
                return
            try:
                rejoin = await self.handover.apply_assignment(partitions, generation)
            except Exception as error:
                self._fail(error)
                return
        self._update_state(partitions)
        self.on_rebalance()
        if self.assignor.gives_up_lead:
            self._run_in_background(self._rejoin_as_follower())
        elif rejoin:
            self.coordinator.request_rejoin()
            return
        self._rejoin_if_plan_is_newer()
        if grace_s := self.assignor.grace_left_s():
            asyncio.get_running_loop().call_later(grace_s + GRACE_MARGIN_S, self.coordinator.request_rejoin)

    def on_membership_lost(self) -> None:
        """Drop all partitions, because other members own them or may soon own them."""
        self._run_in_background(self.handover.lose_all())
        self.on_change()

    async def _follow_plan(self, plan: PlanRecord | None) -> None:
        self._evict(plan.evictions if plan else ())
        is_named = self._is_named(plan)
        if self._is_subscribed and not is_named and self.handover.is_eager:
            await self.leave(ReplicaState.DRAINED)
        elif self._is_subscribed:
            is_newer = plan is not None and plan.epoch > self.assignor.last_assignment.epoch
            if is_newer and not self.coordinator.is_joining:  # else `apply_assignment` compares the epochs afterwards
                self.coordinator.request_rejoin()
        elif is_named or (self.state is ReplicaState.WARM and not self.handover.is_eager):
            self._join()
        self.on_change()

    def _evict(self, evictions: Sequence[Eviction]) -> None:
        """Remove dead members. The rejoin does not wait for the answers: the group waits for no removed member."""
        for eviction in evictions:
            if eviction.member_id and eviction.member_id not in self._evicted_members:
                self._evicted_members.add(eviction.member_id)
                self._run_in_background(self.coordinator.evict(eviction.member_id))
                if self.end_transaction is not None:
                    self._run_in_background(self.end_transaction(eviction))

    async def _rejoin_as_follower(self) -> None:
        log.warning("Other members know a plan that this leader cannot read: leaving, so that another one leads")
        await self.leave(self.state)
        self._join()

    async def _join_if_empty(self) -> None:
        may_join = not self._is_subscribed and self.state is not ReplicaState.STOPPING
        if may_join and await self.coordinator.group_is_empty():
            log.warning("No plan names this replica, but the group is empty: serving until the next plan")
            self._join()

    async def _leave_later(self, state: ReplicaState) -> None:
        await asyncio.sleep(self.linger_s)
        if not self.handover.queues.owned_partitions and not self._is_named(self.plans.newest_plan):
            await self.leave(state)

    def _join(self) -> None:
        if self.state not in (ReplicaState.STOPPING, ReplicaState.DRAINING):
            self._is_subscribed = True
            self.subscribe()

    def _update_state(self, partitions: frozenset[int]) -> None:
        plan, assignor, owned = self.plans.newest_plan, self.assignor, self.handover.queues.owned_partitions
        is_behind = plan is not None and plan.epoch > assignor.last_assignment.epoch
        # Offsets of partitions given up in this rebalance reach their new owners in the next one.
        is_empty = not owned and not (assignor.handed_over and assignor.last_assignment.rejoin)
        self._stale_rebalances = self._stale_rebalances if is_behind else 0
        if self.state is ReplicaState.DRAINING:
            if is_empty or (partitions and assignor.has_announced_drain):  # no other member can take over
                self._drained.set()
            elif not assignor.has_announced_drain:
                self.coordinator.request_rejoin()
        elif owned or self._is_named(plan):
            self.state = ReplicaState.MEMBER
        elif self.state is ReplicaState.MEMBER and is_empty and not is_behind:
            self._run_in_background(self._leave_later(ReplicaState.DRAINED))
        self.on_change()

    def _rejoin_if_plan_is_newer(self) -> None:
        plan = self.plans.newest_plan
        if plan is not None and plan.epoch > self.assignor.last_assignment.epoch:
            pause_s = REJOIN_PAUSES_S[min(self._stale_rebalances, len(REJOIN_PAUSES_S) - 1)]
            self._stale_rebalances += 1
            asyncio.get_running_loop().call_later(pause_s, self.plans.news.set)

    def _is_named(self, plan: PlanRecord | None) -> bool:
        return plan is None or self.replica in plan.replicas

    def _run_in_background(self, work: "Coroutine[Any, Any, None] | asyncio.Future[None]") -> None:
        """Run `work` without waiting for it. A callback that waited for a rebalance would block that rebalance."""

        def on_done(task: "asyncio.Future[None]") -> None:
            self._tasks.discard(task)
            if not task.cancelled() and (error := task.exception()):
                self._fail(error)

        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(on_done)

    def _fail(self, error: BaseException) -> None:
        if not self.failure.done():
            self.failure.set_exception(error)
