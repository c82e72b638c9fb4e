"""Which events of one assignment are served, and which of them may be committed."""

from collections import deque


class Ledger:
    """Offsets in order of service, per partition. An offset is committable once all before it are acknowledged.

    One ledger lives as long as one assignment, so that a late acknowledgement never counts for the next one.
    """

    __slots__ = ("_acknowledged", "_committed", "_next", "_served")

    def __init__(self) -> None:
        self._served: dict[int, deque[int]] = {}
        self._acknowledged: dict[int, set[int]] = {}
        self._next: dict[int, int] = {}
        self._committed: dict[int, int] = {}

    def served(self, partition: int, offset: int) -> None:
        """Note that the event's output has been handed to the producer. Offsets of a partition only grow."""
        self._served.setdefault(partition, deque()).append(offset)

    def acknowledged(self, partition: int, offset: int) -> None:
        """Note that the broker has the event's output. Acknowledgements may come in any order."""
        done = self._acknowledged.setdefault(partition, set())
        done.add(offset)
        waiting = self._served[partition]
        while waiting and waiting[0] in done:
            done.remove(waiting[0])
            self._next[partition] = waiting.popleft() + 1

    def committable(self) -> dict[int, int]:
        """Return partition → offset of the next event, for the partitions that advanced since the last commit."""
        return {partition: at for partition, at in self._next.items() if at != self._committed.get(partition)}

    def committed(self, offsets: dict[int, int]) -> None:
        """Note that the group has `offsets`."""
        self._committed.update(offsets)

    @property
    def unacknowledged(self) -> int:
        """How many outputs the broker has not confirmed."""
        return sum(map(len, self._served.values())) - sum(map(len, self._acknowledged.values()))
