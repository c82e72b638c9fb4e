"""All partitions that are held, and which event comes next."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from services.consumer.lane import Lane

ENOUGH: Final = 200
"""Records waiting in a partition above which no more of it is fetched: a second of work at 5 ms, and little memory."""
WANTING: Final = 50
"""… until no more than this are left."""

Taken = Sequence[tuple[Any, int]]


class Lanes:
    """Partition → lane. Opened, closed and dropped by handovers, filled by the poller, emptied by the servers."""

    def __init__(self, *, per_partition: int, batch_size: int) -> None:
        self._lanes: dict[int, Lane] = {}
        self._per_partition = per_partition
        self._batch_size = batch_size
        self._startable = asyncio.Event()
        self.on_full: Callable[[int, bool], None] = lambda partition, full: None
        """Told when a partition has enough records waiting (True), and when it can do with more (False)."""
        self._full: set[int] = set()

    @property
    def held(self) -> frozenset[int]:
        """Partitions that this replica claims: those it serves and those it is about to give up."""
        return frozenset(self._lanes)

    @property
    def serving(self) -> tuple[int, ...]:
        """Partitions that it serves, ascending."""
        return tuple(sorted(partition for partition, lane in self._lanes.items() if lane.is_open))

    def __getitem__(self, partition: int) -> Lane:
        if partition not in self._lanes:
            raise KeyError(f"partition {partition} is not held now; held are {sorted(self._lanes)}")
        return self._lanes[partition]

    def items(self) -> Iterable[tuple[int, Lane]]:
        """Return partitions with their lanes."""
        return self._lanes.items()

    def open(self, offsets: Mapping[int, int | None], epoch: int) -> None:
        """Begin to serve partitions from `offsets`; None: from wherever the group has committed."""
        for partition, offset in offsets.items():
            self._lanes[partition] = Lane(offset, epoch)

    def reopen(self, partitions: Iterable[int], epoch: int) -> None:
        """Serve on: these stay."""
        for partition in partitions:
            self._lanes[partition].is_open = True
            self._lanes[partition].epoch = epoch
        self.look()

    def close(self, partitions: Iterable[int]) -> None:
        """Start no further event of these."""
        for partition in partitions:
            self._lanes[partition].is_open = False
        self.look()

    async def settle(self, partitions: Iterable[int], patience_s: float) -> set[int]:
        """Wait until every event that was started is done; return the partitions where that came true in time."""
        lanes = {partition: self._lanes[partition] for partition in partitions}
        waits = [asyncio.ensure_future(lane.idle()) for lane in lanes.values() if not lane.is_idle]
        if waits:
            _, late = await asyncio.wait(waits, timeout=patience_s)
            for wait in late:
                wait.cancel()
        return {partition for partition, lane in lanes.items() if lane.is_idle}

    def drop(self, partitions: Iterable[int]) -> None:
        """Forget these: what waits belongs to others, what is still being handled counts for nothing."""
        for partition in partitions:
            self._lanes.pop(partition).is_open = False
            self._full.discard(partition)
        self.look()

    def put(self, partition: int, records: Sequence[Any], received_us: int) -> None:
        """Add what was polled; what is not held is left to its owner."""
        lane = self._lanes.get(partition)
        if lane is not None:
            lane.put(records, received_us)
            self._weigh(partition, lane)
            self.look()

    def take(self) -> tuple[Lane, Taken] | None:
        """Start the oldest events (by the record's timestamp) that may be started now; None when there are none."""
        ready = [item for item in self._lanes.items() if item[1].may_start(self._per_partition)]
        if not ready:
            self._startable.clear()
            return None
        partition, lane = min(ready, key=_age)
        taken = lane.start(self._batch_size)
        self._weigh(partition, lane)
        return lane, taken

    def look(self) -> None:
        """Something changed: see again whether an event may be started."""
        self._startable.set()

    async def startable(self) -> None:
        """Wait until an event may have become startable."""
        await self._startable.wait()

    def _weigh(self, partition: int, lane: Lane) -> None:
        waiting = len(lane.queue)
        if waiting >= ENOUGH and partition not in self._full:
            self._full.add(partition)
            self.on_full(partition, True)
        elif waiting <= WANTING and partition in self._full:
            self._full.discard(partition)
            self.on_full(partition, False)


def _age(item: tuple[int, Lane]) -> int:
    return int(item[1].queue[0][0].timestamp)
