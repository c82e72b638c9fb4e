"""Fakes of the consumer's unit tests: records, a group that answers at once, and replicas in scripted rebalances."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from aiokafka.structs import TopicPartition

from contracts.plan import Eviction, PlanRecord
from contracts.progress import RebalanceKind
from services.consumer.assignor import PlanAssignor
from services.consumer.handover import Handover
from services.consumer.interface import Event, ListenerCalls, Listeners, Options
from services.consumer.lease import Lease
from services.consumer.membership import Membership
from services.consumer.output import Committer
from services.consumer.partition_queue import Batch, PartitionQueue, PartitionQueues
from services.consumer.rebalance import AssignmentMetadata, HandedOverOffset
from services.consumer.server import Server

TOPIC = "payments.requested"


def Record(  # noqa: N802
    offset: int, timestamp: int = 0, key: bytes | None = None, value: bytes | None = b"value", received_us: int = 1
) -> Event:
    return Event(TOPIC, 0, offset, key, value, (), timestamp * 1000, received_us, 0)


def records(first: int, count: int, *, timestamp: int = 0) -> list[Event]:
    return [Record(offset, timestamp, f"key-{offset}".encode()) for offset in range(first, first + count)]


def offsets(events: Iterable[Event]) -> list[int]:
    return [event.offset for event in events]


async def eventually(condition: Callable[[], bool]) -> None:
    """Run other tasks until the condition holds, for at most 2 s."""
    async with asyncio.timeout(2):
        while not condition():  # noqa: ASYNC110  # it spans several objects
            await asyncio.sleep(0)


@dataclass
class FakeCoordinator:
    """Fake that logs its calls in order. The committed offsets of its group are those in `group`."""

    generation: int = 5
    member_id: str = "me-1"
    is_joining: bool = False
    group: dict[int, int] = field(default_factory=dict)
    fetched_partitions: frozenset[int] = frozenset()
    foreign: set[int] = field(default_factory=set)
    """Partitions whose committed offset belongs to another log."""
    positions: dict[int, int] = field(default_factory=dict)
    """Partition → offset of its last seek."""
    next_fetch_offsets: dict[int, int] = field(default_factory=dict)
    answers: list[Exception] = field(default_factory=list)
    """Errors of the next commits, before one is accepted."""
    is_empty: bool = False
    log: list[str] = field(default_factory=list)
    query_gate: asyncio.Event | None = None
    """Event for which a query of committed offsets waits; None: it does not wait."""

    async def _do_commit_offsets(self, assignment: Any, at: Mapping[TopicPartition, Any]) -> None:
        await asyncio.sleep(0)
        if self.answers:
            raise self.answers.pop(0)
        offsets_by_partition = {key.partition: offset.offset for key, offset in at.items()}
        self.group |= offsets_by_partition
        self.log.append(f"commit {offsets_by_partition}")

    async def committed_offsets(self, partitions: Collection[int]) -> tuple[dict[int, int], set[int]]:
        if partitions:
            self.log.append(f"query {sorted(partitions)}")
            if self.query_gate is not None:
                await self.query_gate.wait()
        return {p: self.group[p] for p in partitions if p in self.group}, self.foreign & set(partitions)

    async def fetch(self, partitions: Collection[int], positions: Mapping[int, int]) -> None:
        self.fetched_partitions = frozenset(partitions)
        self.positions |= positions
        self.log.append(f"fetch {sorted(partitions)} from {dict(sorted(positions.items()))}")

    def request_rejoin(self) -> None:
        self.log.append("rejoin")

    async def leave(self) -> None:
        self.log.append("leave")
        self.member_id, self.generation = "", -1

    async def evict(self, member_id: str) -> None:
        self.log.append(f"evict {member_id}")

    async def group_is_empty(self) -> bool:
        return self.is_empty

    def take_log(self) -> list[str]:
        """Return and clear the logged calls."""
        log, self.log = self.log, []
        return log


class ServerHarness:
    """A server with partition 0 at offset 0 and a lease."""

    def __init__(
        self, handle: Any, *, on_error: Any = None, per_partition: int = 1, batch_size: int = 1, **options: Any
    ) -> None:
        self.queues = PartitionQueues(per_partition=per_partition, batch_size=batch_size)
        self.queues.open({0: 0}, epoch=7)
        self.now_s = 100.0
        self.lease = Lease(6.0, 10.0, lambda: self.now_s)
        merged = Options(**{"attempts": 1, "retry_backoff_s": 0.001} | options)
        self.server = Server(self.queues, self.lease, handle, on_error, merged)

    async def serve(self, until: Callable[[], bool], *, concurrency: int = 1) -> None:
        """Serve until the condition holds. Raise the first error."""
        jobs = (*(self.server.run() for _ in range(concurrency)), self.server.watch())
        tasks = [asyncio.ensure_future(job) for job in jobs]
        try:
            async with asyncio.timeout(2):
                while not until():
                    for task in tasks:
                        if task.done():
                            task.result()
                    await asyncio.sleep(0)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


class HandoverHarness:
    """A replica without partitions, in a group that answers at once. Calls of listeners and requests are logged."""

    logged_calls = ("taken", "released", "lost")

    def __init__(self, *, is_eager: bool = False, generation: int = 0, member_id: str = "me-1") -> None:
        self.group = FakeCoordinator(generation=generation, member_id=member_id)
        self.plan_now: PlanRecord | None = None
        self.now_s = 100.0
        self.queues = PartitionQueues(per_partition=1, batch_size=1)
        self.assignor = PlanAssignor("me", "1", lambda: self.plan_now, is_eager=is_eager, clock=lambda: self.now_s)
        self.assignor.owned_partitions = lambda: self.queues.owned_partitions
        listeners = {f"on_partitions_{call}": self.record(call) for call in self.logged_calls}
        self.handover = Handover(
            coordinator=self.group,  # type: ignore[arg-type]
            assignor=self.assignor,
            queues=self.queues,
            committer=Committer(self.group, self.queues, TOPIC, interval_s=60),
            calls=ListenerCalls(Listeners(**listeners)),
            is_eager=is_eager,
            max_release_s=0.02,
        )

    def record(self, call: str) -> Callable[[Sequence[int]], Awaitable[None]]:
        async def record_call(partitions: Sequence[int]) -> None:
            self.group.log.append(f"{call} {list(partitions)}")
            assert call != "taken" or not set(partitions) & set(self.queues.served_partitions), "not served before"

        return record_call

    async def rebalance(
        self,
        generation: int,
        *partitions: int,
        handed_over: dict[int, HandedOverOffset] | None = None,
        rejoin: bool = False,
        epoch: int = 1,
    ) -> bool:
        """Run one rebalance like the coordinator: stop if eager, then apply the assignment."""
        if self.handover.is_eager:
            await self.handover.stop_serving()
        self.group.generation = generation
        self.assignor.last_assignment = AssignmentMetadata(
            epoch=epoch, kind=RebalanceKind.PLAN, members=2, moved=1, handed_over=handed_over or {}, rejoin=rejoin
        )
        return await self.handover.apply_assignment(frozenset(partitions), generation)

    def start(self, partition: int) -> tuple[PartitionQueue, Batch]:
        """Add a record to a partition, and start its next event."""
        queue = self.queues[partition]
        queue.put(records(queue.next_fetch_offset or 0, 1), 1, 1.0)
        return queue, queue.start(1)

    def serve(self, partition: int, count: int = 1) -> None:
        for _ in range(count):
            self.end(*self.start(partition))

    def end(self, queue: PartitionQueue, batch: Batch) -> None:
        self.queues.handler_returned(queue, batch)
        queue.finish(batch)


class MembershipHarness(HandoverHarness):
    """A replica that follows plans in a running event loop. Only the group is fake."""

    logged_calls = ("released", "lost")

    def __init__(self, *, is_eager: bool = False) -> None:
        super().__init__(is_eager=is_eager, generation=-1, member_id="")
        self.plans = SimpleNamespace(newest_plan=None, news=asyncio.Event())
        self.failure: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.me = Membership(
            replica="me",
            subscribe=lambda: self.group.log.append("join"),
            coordinator=self.group,  # type: ignore[arg-type]
            assignor=self.assignor,
            handover=self.handover,
            plans=self.plans,  # type: ignore[arg-type]
            on_change=lambda: None,
            failure=self.failure,
            on_rebalance=lambda: None,
            linger_s=0.0,
        )

    async def plan(
        self, epoch: int, *replicas: str, evictions: tuple[Eviction, ...] = (), grace_s: float = 0.0
    ) -> None:
        self.plan_now = self.plans.newest_plan = PlanRecord(
            epoch=epoch, at_us=0, replicas=replicas, assignment=None, reason="", evictions=evictions, grace_s=grace_s
        )
        await self.me._follow_plan(self.plans.newest_plan)

    async def rebalance(self, generation: int, epoch: int, *partitions: int, rejoin: bool = False) -> None:  # type: ignore[override]
        """Run one rebalance like the coordinator: this member has joined and gets `partitions`."""
        await self.me.before_rebalance()
        self.assignor.metadata([TOPIC])
        self.group.member_id, self.group.generation = "me-1", generation
        self.assignor.last_assignment = AssignmentMetadata(epoch=epoch, kind=RebalanceKind.PLAN, rejoin=rejoin)
        await self.me.apply_assignment(frozenset(partitions), generation)
        for _ in range(5):
            await asyncio.sleep(0)  # background tasks
        if self.failure.done():
            self.failure.result()

    def take_log(self) -> list[str]:
        """Return and clear the logged calls of group and listeners, without fetches."""
        return [call for call in self.group.take_log() if not call.startswith(("fetch", "query"))]
