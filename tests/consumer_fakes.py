"""What the consumer's unit tests share: records, a group that answers at once, a server without Kafka."""

import asyncio
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from aiokafka.structs import TopicPartition

from services.consumer.lease import Lease
from services.consumer.partition_queue import PartitionQueues
from services.consumer.server import Server

TOPIC = "payments.requested"


@dataclass(frozen=True)
class Record:
    offset: int
    timestamp: int = 0
    key: bytes | None = None
    partition: int = 0
    topic: str = TOPIC
    value: bytes | None = b"value"
    headers: tuple[tuple[str, bytes], ...] = ()


def records(first: int, count: int, *, timestamp: int = 0) -> list[Record]:
    return [Record(offset, timestamp, f"key-{offset}".encode()) for offset in range(first, first + count)]


def offsets(taken: Any) -> list[int]:
    return [record.offset for record, _ in taken]


async def eventually(condition: Callable[[], bool]) -> None:
    """Let the other tasks go on until the condition holds, for 2 s at most."""
    async with asyncio.timeout(2):
        while not condition():  # noqa: ASYNC110  # it spans several objects
            await asyncio.sleep(0)


@dataclass
class FakeCoordinator:
    """Notes, in order, what it is asked for. Its group has exactly the offsets in `group`."""

    generation: int = 5
    member_id: str = "me-1"
    joining: bool = False
    group: dict[int, int] = field(default_factory=dict)
    fetched: frozenset[int] = frozenset()
    positions: dict[int, int] = field(default_factory=dict)
    """Where each partition was last sought to."""
    answers: list[Exception] = field(default_factory=list)
    """What the next commits are answered with, before one is accepted."""
    empty: bool = False
    asked: list[str] = field(default_factory=list)
    lookup: asyncio.Event | None = None
    """Where given, a question for committed offsets waits for it."""

    async def _do_commit_offsets(self, assignment: Any, at: Mapping[TopicPartition, Any]) -> None:
        await asyncio.sleep(0)
        if self.answers:
            raise self.answers.pop(0)
        found = {one.partition: offset.offset for one, offset in at.items()}
        self.group |= found
        self.asked.append(f"commit {found}")

    async def committed(self, partitions: Collection[int]) -> dict[int, int]:
        if partitions:
            self.asked.append(f"look up {sorted(partitions)}")
            if self.lookup is not None:
                await self.lookup.wait()
        return {one: self.group[one] for one in partitions if one in self.group}

    async def fetch(self, partitions: Collection[int], positions: Mapping[int, int]) -> None:
        self.fetched = frozenset(partitions)
        self.positions |= positions
        self.asked.append(f"fetch {sorted(partitions)} from {dict(sorted(positions.items()))}")

    def request_rejoin(self) -> None:
        self.asked.append("rejoin")

    async def leave(self) -> None:
        self.asked.append("leave")
        self.member_id, self.generation = "", -1

    async def evict(self, member_id: str) -> None:
        self.asked.append(f"evict {member_id}")

    async def group_is_empty(self) -> bool:
        return self.empty

    def set_fetch_wait(self, wait_ms: int) -> None:
        """Not worth a note."""

    def since(self) -> list[str]:
        """Return what was asked for since the last call."""
        asked, self.asked = self.asked, []
        return asked


class Kitchen:
    """A server with partition 0 at offset 0, and `cooks` running tasks of it."""

    def __init__(self, handle: Any, *, on_error: Any = None, per_partition: int = 1, batch_size: int = 1) -> None:
        self.queues = PartitionQueues(per_partition=per_partition, batch_size=batch_size)
        self.queues.open({0: 0}, epoch=7)
        self.now_s = 100.0
        self.lease = Lease(6.0, lambda: self.now_s)
        self.server = Server(self.queues, self.lease, handle, on_error)

    async def serve(self, until: Callable[[], bool], *, cooks: int = 1) -> None:
        """Run until the condition holds, or the first error."""
        tasks = [
            asyncio.ensure_future(each) for each in (*(self.server.run() for _ in range(cooks)), self.server.watch())
        ]
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
