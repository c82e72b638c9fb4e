"""Acknowledges input in the order of its offsets, although outputs are confirmed in any order.

Faust may commit past a gap: it commits the first run of acknowledged offsets, also when an earlier offset is still
open. So nothing is acknowledged here before everything earlier of the same partition is.
"""

import time
from collections import deque
from collections.abc import Callable, Hashable


class Slot:
    """One input record whose outputs are not all confirmed yet."""

    __slots__ = ("_queue", "_release", "_waiting", "opened_s")

    def __init__(self, queue: deque["Slot"], release: Callable[[], object], opened_s: float) -> None:
        self._queue = queue
        self._release = release
        self._waiting = 1  # the decision itself: close() ends it
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

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
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
