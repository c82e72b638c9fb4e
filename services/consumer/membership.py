"""When a replica joins the group, rejoins it and leaves it: the plan decides, Kafka's group protocol carries it out."""

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

PATIENCE_S: Final = 10.0
"""How long a replica that no plan names waits before it looks whether the group is empty, and serves if it is."""
BEHIND_S: Final = (0.005, 0.05, 0.1, 0.2, 0.5, 1.0)
"""Pauses before rejoining because the leader placed by an older plan than ours: it reads the newer one any moment."""
GRACE_MARGIN_S: Final = 0.05  # the grace of an absent replica is surely over this long after
LINGER_S: Final = 0.25
"""How long a replica that has given everything away stays a member: were it to leave while others still fetch what the
round gave them, they would have to join again."""


@dataclass(slots=True, kw_only=True)
class Membership:
    """Joins, rejoins and leaves. The coordinator's Conduct: it is told of each round, one after the other."""

    replica: str
    subscribe: Callable[[], None]
    coordinator: PlanCoordinator
    assignor: PlanAssignor
    handover: Handover
    plans: PlanReader
    changed: Callable[[], None]
    """Called when the state, or what is owned, may be another."""
    completed: Callable[[], None]
    """Called after each round."""
    failed: "asyncio.Future[None]"
    """Gets the first error that the replica cannot survive."""
    ended: Callable[[Eviction], Coroutine[Any, Any, None]] | None = None
    """Ends, as a coroutine that never raises, what a dead replica has left open."""
    linger_s: float = LINGER_S
    state: ReplicaState = ReplicaState.WARM
    _leaving: asyncio.Lock = field(default_factory=asyncio.Lock)
    _empty: asyncio.Event = field(default_factory=asyncio.Event)
    _tasks: "set[asyncio.Future[None]]" = field(default_factory=set)
    _subscribed: bool = False
    _evicted: set[str] = field(default_factory=set)
    _behind: int = 0

    @property
    def member_id(self) -> str:
        """The group's id of this member; empty when not a member."""
        return str(self.coordinator.member_id) if self._subscribed else ""

    @property
    def generation(self) -> int:
        """The group's generation; -1 when not a member."""
        return int(self.coordinator.generation) if self._subscribed else -1

    async def run(self) -> None:
        """Obey plans until cancelled."""
        await self._obey(self.plans.newest)
        while True:
            try:
                await asyncio.wait_for(self.plans.news.wait(), PATIENCE_S)
            except TimeoutError:
                await self._help_out()
                continue
            self.plans.news.clear()
            await self._obey(self.plans.newest)

    async def drain(self, drain_s: float) -> None:
        """Ask the others to take over and serve until they have, for `drain_s` at most; then leave the group.

        Eager: leave at once; asking would stop everybody, and the leaving again.
        """
        if self.handover.queues.held and not self.handover.eager and self.state is not ReplicaState.STOPPING:
            self.state, self.assignor.draining = ReplicaState.DRAINING, True
            self.changed()
            self._empty.clear()
            self.coordinator.request_rejoin()
            try:
                await asyncio.wait_for(self._empty.wait(), drain_s)
                if self.assignor.last.members > 1:
                    await asyncio.sleep(self.linger_s)
            except TimeoutError:
                log.warning("nobody has taken over within %g s; leaving all the same", drain_s)
        await self.leave(ReplicaState.STOPPING)

    async def leave(self, state: ReplicaState) -> None:
        """Finish the events in flight, commit, leave the group; `state` is what the replica is afterwards."""
        async with self._leaving:  # a leave under way is completed before the replica stops
            if self._subscribed:
                self._subscribed = False  # from here on, a round under way hands out nothing
                await self.handover.give_up_all(self.handover.release_s)
                await self.coordinator.leave()
            self.assignor.forget()
        self.state = state
        self.changed()

    async def abandon(self) -> dict[int, range]:
        """Stop without telling the group, which cannot be reached; return what others will serve again."""
        self._subscribed = False
        self.state = ReplicaState.STOPPING
        return await self.handover.abandon()

    # What the coordinator calls.

    async def before_round(self) -> None:
        """Eager: stop serving. Incremental: go on."""
        try:
            if self.handover.eager and self._subscribed:
                await self.handover.stop()
        except Exception as wrong:  # aiokafka would log it and go on with a replica that serves nothing
            self._fail(wrong)

    async def carry_out(self, partitions: frozenset[int], generation: int) -> None:
        """Serve what this generation assigned, and see whether that is the last word."""
        async with self._leaving:
            if not self._subscribed:
                return
            try:
                again = await self.handover.carry_out(partitions, generation)
            except Exception as wrong:
                self._fail(wrong)
                return
        self._settle(partitions)
        self.completed()
        if again:
            self.coordinator.request_rejoin()
            return
        if self.assignor.last.asks:  # without waiting: the leader has waited long enough
            self.coordinator.request_rejoin()
            return
        self._compare_epochs()
        if grace_s := self.assignor.grace_left_s():
            asyncio.get_running_loop().call_later(grace_s + GRACE_MARGIN_S, self.coordinator.request_rejoin)

    def lost(self) -> None:
        """Drop everything: somebody else owns it."""
        self._start(self.handover.lose())
        self.changed()

    # What follows from plans and rounds.

    async def _obey(self, plan: PlanRecord | None) -> None:
        await self._evict(plan.evictions if plan else ())
        named = self._is_named(plan)
        if self._subscribed and not named and self.handover.eager:
            await self.leave(ReplicaState.DRAINED)
        elif self._subscribed:
            if plan is not None and plan.epoch > self.assignor.last.epoch and not self.coordinator.joining:
                self.coordinator.request_rejoin()  # while joining, the epochs are compared at its end
        elif named or (self.state is ReplicaState.WARM and not self.handover.eager):
            self._join()
        self.changed()

    async def _evict(self, evictions: Sequence[Eviction]) -> None:
        fresh = {each.member_id for each in evictions if each.member_id} - self._evicted
        self._evicted |= fresh
        if self.ended is not None:
            for each in evictions:
                if each.member_id in fresh:
                    self._start(self.ended(each))
        await asyncio.gather(*map(self.coordinator.evict, sorted(fresh)))

    async def _help_out(self) -> None:
        """Nothing has happened for long: serve, if nobody does."""
        if not self._subscribed and self.state is not ReplicaState.STOPPING and await self.coordinator.group_is_empty():
            log.warning("no plan names this replica, but the group is empty: it serves until a plan comes")
            self._join()

    async def _leave_later(self, state: ReplicaState) -> None:
        await asyncio.sleep(self.linger_s)
        if not self.handover.queues.held and not self._is_named(self.plans.newest):
            await self.leave(state)

    def _join(self) -> None:
        if self.state not in (ReplicaState.STOPPING, ReplicaState.DRAINING):
            self._subscribed = True
            self.subscribe()

    def _settle(self, partitions: frozenset[int]) -> None:
        """Become what the round made of this replica."""
        plan, assignor = self.plans.newest, self.assignor
        is_behind = plan is not None and plan.epoch > assignor.last.epoch
        # What was given up now is handed on in the next round.
        is_empty = not self.handover.queues.held and not (assignor.given and assignor.last.again)
        self._behind = self._behind if is_behind else 0
        if self.state is ReplicaState.DRAINING:
            if is_empty or (partitions and assignor.asked_to_drain):  # asked, and still assigned: nobody can take over
                self._empty.set()
            elif not assignor.asked_to_drain:
                self.coordinator.request_rejoin()
        elif self.handover.queues.held or self._is_named(plan):
            self.state = ReplicaState.MEMBER
        elif self.state is ReplicaState.MEMBER and is_empty and not is_behind:
            self._start(self._leave_later(ReplicaState.DRAINED))
        self.changed()

    def _compare_epochs(self) -> None:
        plan = self.plans.newest
        if plan is not None and plan.epoch > self.assignor.last.epoch:
            pause_s = BEHIND_S[min(self._behind, len(BEHIND_S) - 1)]
            self._behind += 1
            asyncio.get_running_loop().call_later(pause_s, self.plans.news.set)

    def _is_named(self, plan: PlanRecord | None) -> bool:
        return plan is None or self.replica in plan.replicas

    def _start(self, duty: "Coroutine[Any, Any, None] | asyncio.Future[None]") -> None:
        """Let it go on beside the round, which waits for its end."""

        def ended(task: "asyncio.Future[None]") -> None:
            self._tasks.discard(task)
            if not task.cancelled() and (wrong := task.exception()):
                self._fail(wrong)

        task = asyncio.ensure_future(duty)
        self._tasks.add(task)
        task.add_done_callback(ended)

    def _fail(self, wrong: BaseException) -> None:
        if not self.failed.done():
            self.failed.set_exception(wrong)
