"""Which offset of a partition may be committed."""

from collections import deque
from collections.abc import Iterable, Sequence


class Offsets:
    """What one member may commit of a partition. Offsets only grow; one is committed once all before it are done."""

    __slots__ = ("_begun_from", "_committed", "_done", "position", "unfinished")

    def __init__(self, offset: int | None = None) -> None:
        self.position = offset
        """Offset after the last event done, all before it included; None while nothing is known."""
        self._committed: int | None = offset
        self._begun_from = offset
        self.unfinished: deque[int] = deque()
        """Offsets begun that are not done, or whose forerunners are not, ascending."""
        self._done: set[int] = set()

    def begin(self, offsets: Sequence[int]) -> None:
        """Note events, in order, that are being handled from now on."""
        if self._begun_from is None:
            self._begun_from = offsets[0]
        self.unfinished.extend(offsets)

    def undo(self, offsets: Sequence[int]) -> bool:
        """Forget that these were begun; return whether that was possible: not where others were begun after them."""
        if list(self.unfinished)[-len(offsets) :] != list(offsets):
            return False
        for _ in offsets:
            self.unfinished.pop()
        return True

    def end(self, offsets: Iterable[int]) -> None:
        """Note that these events are done for good."""
        self._done.update(offsets)
        while self.unfinished and self.unfinished[0] in self._done:
            offset = self.unfinished.popleft()
            self._done.remove(offset)
            self.position = offset + 1

    @property
    def committable(self) -> int | None:
        """What to commit; None when there is nothing new."""
        return self.position if self.position != self._committed else None

    def committed(self, offset: int) -> None:
        """Note that the group has `offset`."""
        self._committed = self._begun_from = offset

    def uncommit(self) -> None:
        """Note that the group has another offset than the one that this began at."""
        self._committed = None

    @property
    def uncommitted(self) -> range:
        """Offsets of events that were begun here and are not committed; empty when there are none."""
        if self._begun_from is None:
            return range(0)
        end = self.unfinished[-1] + 1 if self.unfinished else self.position
        return range(self._begun_from, self._begun_from if end is None else end)
