"""What a member on librdkafka may commit, for each partition it owns."""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence

from confluent_kafka import TopicPartition


class _Owned:
    """One partition while it is owned. An offset may be committed once all events before it are written."""

    __slots__ = ("_served", "_written", "committed", "next")

    def __init__(self) -> None:
        self._served: deque[int] = deque()
        self._written: set[int] = set()
        self.next: int | None = None
        self.committed: int | None = None

    def serving(self, offset: int) -> Callable[[], None]:
        self._served.append(offset)
        return lambda: self._acknowledged(offset)

    def _acknowledged(self, offset: int) -> None:
        self._written.add(offset)
        while self._served and self._served[0] in self._written:
            self._written.remove(self._served[0])
            self.next = self._served.popleft() + 1


class Offsets:
    """Partitions come and go one by one; late news of a partition that went do not count for the one that came back."""

    def __init__(self, topic: str) -> None:
        self._topic = topic
        self._owned: dict[int, _Owned] = {}

    def open(self, partitions: Iterable[int]) -> None:
        """Begin with partitions that were taken over."""
        self._owned.update((partition, _Owned()) for partition in partitions)

    def close(self, partitions: Iterable[int]) -> None:
        """Forget partitions that were given up."""
        for partition in partitions:
            self._owned.pop(partition, None)

    def serving(self, partition: int, offset: int) -> Callable[[], None]:
        """Note that the event is being served; return what to call once its output is acknowledged."""
        return self._owned[partition].serving(offset)

    def committable(self, partitions: Collection[int] | None = None) -> list[TopicPartition]:
        """Return the offsets that the group does not have yet, of `partitions` or of all owned."""
        return [
            TopicPartition(self._topic, partition, owned.next)
            for partition, owned in self._owned.items()
            if (partitions is None or partition in partitions) and owned.next not in {None, owned.committed}
        ]

    def committed(self, offsets: Sequence[TopicPartition]) -> None:
        """Note what the group has now; offsets that were refused carry an error."""
        for each in offsets:
            if each.error is None and each.partition in self._owned:
                self._owned[each.partition].committed = each.offset
