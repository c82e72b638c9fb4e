"""When a replica joins the group, rejoins it and leaves it: the plan decides, Kafka's group protocol carries it out."""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any, Final

from aiokafka.abc import ConsumerRebalanceListener
from aiokafka.structs import TopicPartition

from contracts.plan import PlanRecord
from contracts.progress import ReplicaState
from services.consumer.clients import Clients
from services.consumer.commits import Committer
from services.consumer.coordinator import unseen
from services.consumer.worker import Worker

log = logging.getLogger(__name__)

PATIENCE_S: Final = 10.0
"""How long a replica that no plan names waits before it looks whether the group is empty, and serves if it is."""
BEHIND_S: Final = (0.005, 0.05, 0.1, 0.2, 0.5, 1.0)
"""Pauses before rejoining because the leader placed by an older plan than ours: it reads the newer one any moment."""
SETTLE_S: Final = 5.0
"""How long a rebalance waits for outstanding outputs: below the rebalance time-out, which costs the membership."""


class Membership(ConsumerRebalanceListener):  # type: ignore[misc]  # aiokafka ships no types
    """Joins, rejoins and leaves. aiokafka calls the two hooks around each rebalance, one after the other."""

    def __init__(
        self,
        *,
        replica: str,
        clients: Clients,
        worker: Worker,
        committer: Committer,
        changed: Callable[[], None],
    ) -> None:
        self._replica = replica
        self._topic = clients.input_topic
        self._consumer = clients.consumer
        self._coordinator = clients.coordinator
        self._assignor = clients.assignor
        self._plans = clients.plans
        self._failed = clients.failed
        self._worker = worker
        self._committer = committer
        self._changed = changed
        self._leaving = asyncio.Lock()
        self._subscribed = False
        self._evicted: set[str] = set()
        self._behind = 0
        self._gave_up_s: float | None = None
        self._before: tuple[str, int, tuple[int, ...]] | None = None
        self.state = ReplicaState.WARM
        self.rebalances = 0
        self.rebalance_us = 0
        """How long the last rebalance kept this replica from serving."""

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
                if self.state is ReplicaState.WARM and not self._subscribed:
                    await self._help_out()
                continue
            self._plans.news.clear()
            await self._obey(self._plans.newest)

    async def _obey(self, plan: PlanRecord | None) -> None:
        named = plan is None or self._replica in plan.replicas
        for member_id in unseen(plan.evictions if plan else (), self._evicted):
            await self._coordinator.ensure_coordinator_known()
            await self._coordinator.evict(member_id)
        if not named:
            if self._subscribed:
                await self.leave(ReplicaState.DRAINED)
        elif not self._subscribed:
            self._join()
        elif plan is not None and plan.epoch > self._assignor.epoch and not self._coordinator.joining:
            self._coordinator.request_rejoin()  # while joining, the epochs are compared at its end
        self._changed()

    async def _help_out(self) -> None:
        if await self._coordinator.group_is_empty():
            log.warning("no plan names this replica, but the group is empty: it serves until a plan comes")
            self._join()

    def _join(self) -> None:
        if self.state is ReplicaState.STOPPING:
            return
        self._subscribed = True
        self._consumer.subscribe([self._topic], listener=self)

    async def leave(self, state: ReplicaState) -> None:
        """Finish the event in flight, commit, leave the group; `state` is what the replica is afterwards."""
        async with self._leaving:  # a drain under way is completed before the replica stops
            if self._subscribed:
                self._subscribed = False  # from here on, a rebalance under way hands out nothing
                await self._give_up()
                await self._coordinator.leave()
            self._assignor.forget()
            self._before = None
            self.state = state
        self._changed()

    async def _give_up(self) -> bool:
        """Stop serving and commit; return whether all that was served is acknowledged and committed."""
        if self._gave_up_s is None:
            self._gave_up_s = time.monotonic()
        try:
            await asyncio.wait_for(self._worker.pause(), SETTLE_S)
        except TimeoutError:
            log.warning("outputs are not acknowledged within %.0f s; their events will be served again", SETTLE_S)
            await self._committer.close()
            return False
        return await self._committer.close()

    async def on_partitions_revoked(self, revoked: Any) -> None:
        """Stop serving before the group is joined again: eager, so everything is given up, and mostly given back."""
        try:
            before = (self.member_id, self.generation, self._assignor.owned)
            self._before = before if await self._give_up() else None
        except Exception as wrong:  # aiokafka would log it and go on with a replica that serves nothing
            self._fail(wrong)

    async def on_partitions_assigned(self, assigned: Any) -> None:
        """Serve what this generation assigned."""
        try:
            if self._subscribed:
                self._take_up()
        except Exception as wrong:
            self._fail(wrong)

    def _take_up(self) -> None:
        generation, partitions = self.generation, self._assignor.owned
        kept = self._kept(generation, partitions)
        for partition in kept:
            self._consumer.seek(TopicPartition(self._topic, partition), self._worker.inbox.fetched_to(partition))
        self._assignor.generation = generation
        self._worker.resume(partitions, kept, self._committer.open(generation), self._assignor.epoch)
        if self._gave_up_s is not None:
            self.rebalance_us = int((time.monotonic() - self._gave_up_s) * 1_000_000)
            self._gave_up_s = None
        self.rebalances += 1
        self.state = ReplicaState.MEMBER
        self._compare_epochs()
        self._changed()

    def _kept(self, generation: int, partitions: tuple[int, ...]) -> set[int]:
        """Return the partitions nobody else can have owned since; what was fetched of them is still good."""
        if self._before is None or self._before[:2] != (self.member_id, generation - 1):
            return set()
        before = self._before[2]
        return {p for p in partitions if p in before and self._worker.inbox.fetched_to(p) is not None}

    def _compare_epochs(self) -> None:
        plan = self._plans.newest
        if plan is None or plan.epoch <= self._assignor.epoch:
            self._behind = 0
            return
        pause_s = BEHIND_S[min(self._behind, len(BEHIND_S) - 1)]
        self._behind += 1
        asyncio.get_running_loop().call_later(pause_s, self._plans.news.set)

    def _fail(self, wrong: Exception) -> None:
        if not self._failed.done():
            self._failed.set_exception(wrong)
