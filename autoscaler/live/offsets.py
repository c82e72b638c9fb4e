"""Where each partition ends and how far the group has committed, asked of the brokers.

By a consumer that never joins, not by the admin client: in librdkafka 2.16 an admin request for a group's offsets whose
connection drops aborts the whole process (use after free, librdkafka pull request 5397).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from confluent_kafka import OFFSET_INVALID, Consumer, KafkaException, TopicPartition

from autoscaler.ports import NotReadyError
from contracts.clock import steady_s

EARLIEST: Final = -2
"""In place of a timestamp, Kafka's protocol takes this for the beginning of a partition …"""
LATEST: Final = -1
"""… and this for its end."""
RECONNECT_AFTER: Final = 3
"""Failed readings in a row before the client is made anew."""
COUNT_EVERY_S: Final = 2.0
"""How often the number of partitions is looked at: topics grow rarely, and the question costs a millisecond."""
MIN_WAIT_S: Final = 0.05


@dataclass(frozen=True, slots=True)
class PartitionOffsets:
    """Of one partition.

    A group that has not committed yet starts at the beginning (its reset is `earliest`), so that is a known state.
    """

    end: int
    lag: int
    """Events produced, still stored and not committed."""


class OffsetReader:
    """Reads the offsets of one topic and group.

    partitions: how many the topic has at least. It may grow: the number is looked at from time to time.
    connect: makes a consumer whose group id is the group's. It never subscribes, so it never is a member. It is made
    anew after errors: a client can hold on to leaders and coordinators of before a restart of the brokers.
    """

    def __init__(
        self,
        connect: Callable[[], Consumer],
        *,
        topic: str,
        partitions: int,
        deadline_s: float = 0.8,
        clock: Callable[[], float] = steady_s,
    ) -> None:
        self._connect = connect
        self._consumer: Consumer | None = None
        self._failures = 0
        self._topic = topic
        self._least = partitions
        self._counted_s = -math.inf
        self.partitions = partitions
        """How many there are, as last seen."""
        self._deadline_s = deadline_s
        self._clock = clock

    def read(self) -> tuple[float, tuple[PartitionOffsets, ...]]:
        """Ask for everything: when the end offsets arrived (seconds, by the clock), and all partitions by number.

        Raises NotReadyError naming the first number that is unknown at the deadline."""
        try:
            if self._clock() - self._counted_s >= COUNT_EVERY_S:
                self.count()
            reading = self._ask(self._connected())
        except NotReadyError:
            self._failures += 1
            if self._failures % RECONNECT_AFTER == 0:
                self.close()
            raise
        self._failures = 0
        return reading

    def ends(self) -> tuple[float, tuple[int, ...]]:
        """Ask for the end offsets only: when they arrived (seconds, by the clock), and each partition's.

        Raises NotReadyError; an answer that makes no sense is one, too.
        """
        places = [TopicPartition(self._topic, number, LATEST) for number in range(self.partitions)]
        try:
            answered = self._connected().offsets_for_times(places, timeout=self._deadline_s / 4)
        except KafkaException as failed:
            raise NotReadyError(f"end offsets of {self._topic}: {failed.args[0].str()}") from failed
        at_s = self._clock()
        if any(one.error is not None or one.offset < 0 for one in answered):
            raise NotReadyError(f"end offsets of {self._topic}: not all are known")
        return at_s, tuple(one.offset for one in answered)

    def count(self) -> int:
        """Ask how many partitions the topic has, and return it. Raises NotReadyError."""
        try:
            described = self._connected().list_topics(self._topic, timeout=self._deadline_s / 2).topics[self._topic]
        except KafkaException as failed:
            raise NotReadyError(f"number of partitions of {self._topic}: {failed.args[0].str()}") from failed
        if described.error is not None:
            raise NotReadyError(f"number of partitions of {self._topic}: {described.error.str()}")
        self._counted_s = self._clock()
        self.partitions = max(self._least, len(described.partitions))
        return self.partitions

    def close(self) -> None:
        """Leave the brokers. The next reading connects again."""
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None

    def _connected(self) -> Consumer:
        self._consumer = self._consumer or self._connect()
        return self._consumer

    def _ask(self, consumer: Consumer) -> tuple[float, tuple[PartitionOffsets, ...]]:
        give_up_s = steady_s() + self._deadline_s

        def ask(question: Callable[..., list[TopicPartition]], timestamp: int, what: str) -> list[TopicPartition]:
            places = [TopicPartition(self._topic, number, timestamp) for number in range(self.partitions)]
            try:
                return question(places, timeout=max(MIN_WAIT_S, give_up_s - steady_s()))
            except KafkaException as failed:
                raise NotReadyError(f"{what}s of {self._topic}: {failed.args[0].str()}") from failed

        committed = ask(consumer.committed, OFFSET_INVALID, "committed offset")
        beginnings = ask(consumer.offsets_for_times, EARLIEST, "beginning offset")
        ends = ask(consumer.offsets_for_times, LATEST, "end offset")
        at_s = self._clock()
        return at_s, tuple(map(self._partition, beginnings, ends, committed))

    def _partition(self, beginning: Any, end: Any, committed: Any) -> PartitionOffsets:
        """Turn the client's markers for "none" into types; what makes no sense is unknown."""
        name = f"{self._topic}/{end.partition}"
        for entry, what in ((beginning, "beginning"), (end, "end"), (committed, "committed")):
            if entry.error is not None:
                raise NotReadyError(f"{what} offset of {name}: {entry.error.str()}")
        if beginning.offset < 0 or end.offset < beginning.offset:
            raise NotReadyError(f"offsets of {name}: the broker answered {beginning.offset} to {end.offset}")
        if committed.offset != OFFSET_INVALID and not 0 <= committed.offset <= end.offset:
            raise NotReadyError(f"lag of {name}: committed offset {committed.offset}, end {end.offset}")
        return PartitionOffsets(end.offset, end.offset - max(beginning.offset, committed.offset))
