"""When a replica joins the group, rejoins it and leaves it: the plan decides, Kafka's group protocol carries it out."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any, Final

from contracts.plan import Eviction, PlanRecord
from contracts.progress import ReplicaState
from services.consumer.assignor import PlanAssignor
from services.consumer.coordinator import FETCH_WAIT_MS, PlanCoordinator
from services.consumer.handover import Handover
from services.consumer.lease import Lease
from services.consumer.plan_reader import PlanReader, unseen

log = logging.getLogger(__name__)

PATIENCE_S: Final = 10.0
"""How long a replica that no plan names waits before it looks whether the group is empty, and serves if it is."""
BEHIND_S: Final = (0.005, 0.05, 0.1, 0.2, 0.5, 1.0)
"""Pauses before rejoining because the leader placed by an older plan than ours: it reads the newer one any moment."""
GRACE_MARGIN_S: Final = 0.05
"""The grace of an absent replica is surely over this long after."""
LINGER_S: Final = 0.25
"""How long a replica that has given everything away stays a member: were it to leave while others still fetch what the
round gave them, they would have to join again."""


class Membership:
    """Joins, rejoins and leaves. The coordinator's Conduct: it is told of each round, one after the other."""

    def __init__(
        self,
        *,
        replica: str,
        subscribe: Callable[[], None],
        coordinator: PlanCoordinator,
        assignor: PlanAssignor,
        handover: Handover,
        lease: Lease,
        plans: PlanReader,
        changed: Callable[[], None],
        completed: Callable[[], None],
        failed: "asyncio.Future[None]",
        linger_s: float = LINGER_S,
    ) -> None:
        self._replica = replica
        self._subscribe = subscribe
        self._coordinator = coordinator
        self._assignor = assignor
        self._handover = handover
        self._lease = lease
        self.now_s = lease.now_s
        self._plans = plans
        self._changed = changed
        self._completed = completed
        self._failed = failed
        self._linger_s = linger_s
        self._leaving = asyncio.Lock()
        self._empty = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._subscribed = False
        self._evicted: set[str] = set()
        self._behind = 0
        self.state = ReplicaState.WARM

    @property
    def member_id(self) -> str:
        """The group's id of this member; empty when not a member."""
        return str(self._coordinator.member_id) if self._subscribed else ""

    @property
    def generation(self) -> int:
        """The group's generation; -1 when not a member."""
        return int(self._coordinator.generation) if self._subscribed else -1

    async def run(self) -> None:
        """Obey plans until cancelled."""
        await self._obey(self._plans.newest)
        while True:
            try:
                await asyncio.wait_for(self._plans.news.wait(), PATIENCE_S)
            except TimeoutError:
                await self._help_out()
                continue
            self._plans.news.clear()
            await self._obey(self._plans.newest)

    async def drain(self, drain_s: float) -> None:
        """Ask the others to take over and serve until they have, for `drain_s` at most; then leave the group.

        Eager: leave at once; asking would stop everybody, and the leaving again.
        """
        if self._handover.queues.held and not self._handover.eager and self.state is not ReplicaState.STOPPING:
            self.state, self._assignor.draining = ReplicaState.DRAINING, True
            self._changed()
            self._empty.clear()
            self._coordinator.request_rejoin()
            try:
                await asyncio.wait_for(self._empty.wait(), drain_s)
                if self._assignor.last.members > 1:
                    await asyncio.sleep(self._linger_s)
            except TimeoutError:
                log.warning("nobody has taken over within %g s; leaving all the same", drain_s)
        await self.leave(ReplicaState.STOPPING)

    async def leave(self, state: ReplicaState) -> None:
        """Finish the events in flight, commit, leave the group; `state` is what the replica is afterwards."""
        async with self._leaving:  # a leave under way is completed before the replica stops
            if self._subscribed:
                self._subscribed = False  # from here on, a round under way hands out nothing
                await self._handover.give_up_all(self._handover.release_s)
                await self._coordinator.leave()
            self._assignor.forget()
        self.state = state
        self._changed()

    async def abandon(self) -> dict[int, range]:
        """Stop without telling the group, which cannot be reached; return what others will serve again."""
        self._subscribed = False
        self.state = ReplicaState.STOPPING
        return await self._handover.abandon()

    # What the coordinator calls.

    async def before_round(self) -> None:
        """Eager: stop serving. Incremental: go on."""
        try:
            if self._handover.eager and self._subscribed:
                await self._handover.stop()
        except Exception as wrong:  # aiokafka would log it and go on with a replica that serves nothing
            self._fail(wrong)

    async def carry_out(self, partitions: frozenset[int], generation: int) -> None:
        """Serve what this generation assigned, and see whether that is the last word."""
        async with self._leaving:
            if not self._subscribed:
                return
            try:
                again = await self._handover.carry_out(partitions, generation)
            except Exception as wrong:
                self._fail(wrong)
                return
        self._settle(partitions)
        self._completed()
        if again:
            self._coordinator.request_rejoin()
            return
        self._coordinator.set_fetch_wait(FETCH_WAIT_MS)
        self._compare_epochs()
        if grace_s := self._assignor.grace_left_s():
            asyncio.get_running_loop().call_later(grace_s + GRACE_MARGIN_S, self._coordinator.request_rejoin)

    def lost(self) -> None:
        """Drop everything: somebody else owns it."""
        if lost := sorted(self._handover.lose()):
            self._start(self._handover.listeners.on_partitions_lost, lost)
        self._changed()

    def confirmed(self, asked_s: float) -> None:
        """Renew the lease."""
        self._lease.renew(asked_s)

    def waits(self, *, on: bool) -> None:
        """Hold the lease's clock while the broker holds its answer."""
        self._lease.waits = on

    # What follows from plans and rounds.

    async def _obey(self, plan: PlanRecord | None) -> None:
        await self._evict(plan.evictions if plan else ())
        named = self._is_named(plan)
        if self._subscribed and not named and self._handover.eager:
            await self.leave(ReplicaState.DRAINED)
        elif self._subscribed:
            if plan is not None and plan.epoch > self._assignor.last.epoch and not self._coordinator.joining:
                self._coordinator.request_rejoin()  # while joining, the epochs are compared at its end
        elif named or (self.state is ReplicaState.WARM and not self._handover.eager):
            self._join()
        self._changed()

    async def _evict(self, evictions: Sequence[Eviction]) -> None:
        await asyncio.gather(*map(self._coordinator.evict, unseen(evictions, self._evicted)))

    async def _help_out(self) -> None:
        """Nothing has happened for long: serve, if nobody does."""
        if (
            not self._subscribed
            and self.state is not ReplicaState.STOPPING
            and await self._coordinator.group_is_empty()
        ):
            log.warning("no plan names this replica, but the group is empty: it serves until a plan comes")
            self._join()

    async def _leave_later(self, state: ReplicaState) -> None:
        await asyncio.sleep(self._linger_s)
        if not self._handover.queues.held and not self._is_named(self._plans.newest):
            await self.leave(state)

    def _join(self) -> None:
        if self.state not in (ReplicaState.STOPPING, ReplicaState.DRAINING):
            self._subscribed = True
            self._lease.renew(self.now_s())
            self._subscribe()

    def _settle(self, partitions: frozenset[int]) -> None:
        """Become what the round made of this replica."""
        plan, assignor = self._plans.newest, self._assignor
        is_behind = plan is not None and plan.epoch > assignor.last.epoch
        # What was given up now is handed on in the next round.
        is_empty = not self._handover.queues.held and not (assignor.given and assignor.last.again)
        self._behind = self._behind if is_behind else 0
        if self.state is ReplicaState.DRAINING:
            if is_empty or (partitions and assignor.asked_to_drain):  # asked, and still assigned: nobody can take over
                self._empty.set()
            elif not assignor.asked_to_drain:
                self._coordinator.request_rejoin()
        elif self._handover.queues.held or self._is_named(plan):
            self.state = ReplicaState.MEMBER
        elif self.state is ReplicaState.MEMBER and is_empty and not is_behind:
            self._start(self._leave_later, ReplicaState.DRAINED)
        self._changed()

    def _compare_epochs(self) -> None:
        plan = self._plans.newest
        if plan is not None and plan.epoch > self._assignor.last.epoch:
            pause_s = BEHIND_S[min(self._behind, len(BEHIND_S) - 1)]
            self._behind += 1
            asyncio.get_running_loop().call_later(pause_s, self._plans.news.set)

    def _is_named(self, plan: PlanRecord | None) -> bool:
        return plan is None or self._replica in plan.replicas

    def _start(self, duty: Callable[[Any], Any], argument: Any) -> None:
        """Do something beside the round, which waits for its end."""

        def ended(task: "asyncio.Task[None]") -> None:
            self._tasks.discard(task)
            if not task.cancelled() and (wrong := task.exception()):
                self._fail(wrong)

        task = asyncio.get_running_loop().create_task(duty(argument))
        self._tasks.add(task)
        task.add_done_callback(ended)

    def _fail(self, wrong: BaseException) -> None:
        if not self._failed.done():
            self._failed.set_exception(wrong)
