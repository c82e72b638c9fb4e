"""A replica named `me`, plans and rounds told to it one by one. For the membership's unit tests."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from types import SimpleNamespace

from consumer_fakes import TOPIC, FakeCoordinator, records

from contracts.plan import Eviction, PlanRecord
from contracts.progress import ReplicaState, RoundKind
from services.consumer.assignor import PlanAssignor
from services.consumer.handover import Handover, Listeners
from services.consumer.lease import Lease
from services.consumer.membership import Membership
from services.consumer.output import Committer
from services.consumer.partition_queue import PartitionQueues
from services.consumer.rounds import Origin

IGNORED = ("fetch", "look up", "taken")


class Story:
    """A replica named `me`, in a running event loop. Everything but the group is real."""

    def __init__(self, *, eager: bool = False) -> None:
        self.group = FakeCoordinator(generation=-1, member_id="")
        self.plans = SimpleNamespace(newest=None, news=asyncio.Event())
        self.now_s = 100.0
        self.assignor = PlanAssignor("me", "1", lambda: self.plans.newest, eager=eager, clock=lambda: self.now_s)
        self.queues = PartitionQueues(per_partition=1, batch_size=1)
        self.assignor.claims = lambda: self.queues.held
        self.lease = Lease(6.0)
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.states: list[ReplicaState] = []
        self.handover = Handover(
            coordinator=self.group,  # type: ignore[arg-type]
            assignor=self.assignor,
            queues=self.queues,
            committer=Committer(self.group, self.queues, TOPIC, interval_s=60),
            listeners=Listeners(on_partitions_released=self.hear("released"), on_partitions_lost=self.hear("lost")),
            newest_plan=lambda: self.plans.newest,
            eager=eager,
            release_s=0.02,
        )
        self.me = Membership(
            replica="me",
            subscribe=lambda: self.group.asked.append("join"),
            coordinator=self.group,  # type: ignore[arg-type]
            assignor=self.assignor,
            handover=self.handover,
            lease=self.lease,
            plans=self.plans,  # type: ignore[arg-type]
            changed=lambda: self.states.append(self.me.state),
            failed=self.failed,
            completed=lambda: None,
            linger_s=0.0,
        )

    def hear(self, what: str) -> Callable[[Sequence[int]], Awaitable[None]]:
        async def heard(partitions: Sequence[int]) -> None:
            self.group.asked.append(f"{what} {list(partitions)}")

        return heard

    async def plan(
        self, epoch: int, *replicas: str, evictions: tuple[Eviction, ...] = (), grace_s: float = 0.0
    ) -> None:
        self.plans.newest = PlanRecord(
            epoch=epoch,
            at_us=0,
            replicas=replicas,
            assignment=None,
            reason="",
            evictions=evictions,
            grace_s=grace_s,
        )
        await self.me._obey(self.plans.newest)

    async def round(self, generation: int, epoch: int, *partitions: int, again: bool = False) -> None:
        """One rebalance as the coordinator runs it: this member has joined and gets `partitions`."""
        await self.me.before_round()
        self.assignor.metadata([TOPIC])
        self.group.member_id, self.group.generation = "me-1", generation
        self.assignor.last = Origin(epoch=epoch, kind=RoundKind.PLAN, again=again)
        await self.me.carry_out(frozenset(partitions), generation)
        for _ in range(5):
            await asyncio.sleep(0)  # what follows beside the round
        if self.failed.done():
            self.failed.result()

    def serve(self, partition: int, count: int = 1) -> None:
        queue = self.queues[partition]
        queue.put(records(queue.expected or 0, count), 1)
        for _ in range(count):
            taken = queue.start(1)
            queue.returned(taken)
            queue.finished(taken)

    def since(self) -> list[str]:
        """What was asked of the group and told to listeners since the last look, fetching left out."""
        return [each for each in self.group.since() if not each.startswith(IGNORED)]
