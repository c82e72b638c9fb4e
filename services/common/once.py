"""What makes effects happen once: input acknowledged in order, and the ids of what was written.

Faust may commit past a gap: it commits the first run of acknowledged offsets, also when an earlier offset is still
open. So nothing is acknowledged here before everything earlier of the same partition is.
"""

from collections import deque
from collections.abc import Callable, Hashable, Iterable
from typing import Final

from contracts.clock import steady_s

SPAN: Final = 5000
"""Records of an input partition that a stage takes beyond the committed offset: then it waits for a commit.

So what can be repeated is bounded, and with it the ids to remember and to read back. With 75 events/s in a partition, a
minute without a commit.
"""
RETENTION: Final = 50_000
"""Ids a running stage remembers beside those it has read back, oldest dropped first: more than SPAN for each partition
of its input, some 10 MB."""
TAIL: Final = 10_000
"""Records of each output partition read back at least: for repeats by the producers of the input, and beside them for
what other copies of the stage have written while the group noticed that one had died."""


class Slot:
    """One input record whose outputs are not all confirmed yet."""

    __slots__ = ("_queue", "_release", "_waiting", "opened_s")

    def __init__(self, queue: deque["Slot"], release: Callable[[], object], opened_s: float) -> None:
        self._queue = queue
        self._release = release
        self._waiting = 1  # the decision itself, which the last `confirm` ends
        self.opened_s = opened_s

    def expect(self) -> None:
        """One more output must be confirmed before this record may be acknowledged."""
        self._waiting += 1

    def confirm(self) -> None:
        """One output is confirmed, or the decision is over. Acknowledges whatever may be acknowledged by that."""
        self._waiting -= 1
        queue = self._queue
        while queue and queue[0]._waiting == 0:
            queue.popleft()._release()


class Acknowledgements:
    """The open slots of every assigned partition."""

    def __init__(self, clock: Callable[[], float] = steady_s) -> None:
        self._clock = clock
        self._open: dict[Hashable, deque[Slot]] = {}

    def open(self, source: Hashable, release: Callable[[], object]) -> Slot:
        """Begin with the next record of `source` (topic and partition). `release` acknowledges it."""
        queue = self._open.setdefault(source, deque())
        slot = Slot(queue, release, self._clock())
        queue.append(slot)
        return slot

    def forget(self) -> None:
        """Drop all slots: their partitions were given up and will be read again from the committed offset."""
        for queue in self._open.values():
            queue.clear()
        self._open.clear()

    @property
    def count(self) -> int:
        """Records not acknowledged yet."""
        return sum(map(len, self._open.values()))

    def oldest_s(self) -> float:
        """Age of the oldest open record in seconds; 0 without one."""
        opened = [queue[0].opened_s for queue in self._open.values() if queue]
        return self._clock() - min(opened) if opened else 0.0


class Uncommitted:
    """Offsets that were taken and may come again. No more than `most` of a partition are, until some are committed."""

    def __init__(self, most: int = SPAN) -> None:
        self._most = most
        self._taken: dict[Hashable, deque[int]] = {}

    def may_take(self, source: Hashable, offset: int, committed: int | None) -> bool:
        """Take one more and return True, or False while it is too far from what is committed.

        committed: the offset from which `source` would be read again; None where that is not known.
        """
        taken = self._taken.setdefault(source, deque())
        while committed is not None and taken and taken[0] < committed:
            taken.popleft()
        if len(taken) >= self._most:
            return False
        taken.append(offset)
        return True

    def forget(self) -> None:
        """Begin anew: the partitions are read again from their committed offsets."""
        self._taken.clear()


class SeenIds:
    """A set that forgets its oldest members. A set, not a high-water mark: order is not guaranteed after a crash."""

    def __init__(self, retention: int = RETENTION) -> None:
        self._least = self._retention = retention
        self._ids: dict[str, None] = {}  # a dict keeps insertion order

    def add(self, identity: str) -> None:
        """Remember `identity` as the newest."""
        self._ids.pop(identity, None)
        self._ids[identity] = None
        if len(self._ids) > self._retention:
            del self._ids[next(iter(self._ids))]

    def update(self, identities: Iterable[str]) -> None:
        """Remember all, what was read back, and keep them until as many new ones as ever fit have come."""
        identities = list(identities)
        self._retention = self._least + len(identities)
        for identity in identities:
            self.add(identity)

    def __contains__(self, identity: str) -> bool:
        return identity in self._ids

    def __len__(self) -> int:
        return len(self._ids)
