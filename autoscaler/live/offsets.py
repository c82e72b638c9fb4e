"""Where each partition ends and how far the group has committed, asked of the brokers.

By a consumer that never joins, not by the admin client: in librdkafka 2.16 an admin request for a group's offsets whose
connection drops aborts the whole process (use after free, librdkafka pull request 5397).
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from confluent_kafka import OFFSET_INVALID, Consumer, KafkaException, TopicPartition

from autoscaler.ports import NotReadyError

EARLIEST: Final = -2
"""In place of a timestamp, Kafka's protocol takes this for the beginning of a partition …"""
LATEST: Final = -1
"""… and this for its end."""
RECONNECT_AFTER: Final = 3
"""Failed readings in a row before the client is made anew."""
MIN_WAIT_S: Final = 0.05


@dataclass(frozen=True, slots=True)
class PartitionOffsets:
    """One partition, all three offsets known: 0 ≤ beginning, committed ≤ end.

    A group that has not committed yet starts at the beginning (its reset is `earliest`), so that is a known state.
    """

    beginning: int
    end: int
    committed: int | None
    """None: the group has never committed here."""

    @property
    def lag(self) -> int:
        """Events produced, still stored and not committed."""
        return self.end - max(self.beginning, self.committed or 0)


@dataclass(frozen=True, slots=True)
class OffsetReading:
    """All partitions of the topic, by number, at one moment."""

    at_s: float
    """Seconds since the epoch, when the end offsets arrived."""
    partitions: tuple[PartitionOffsets, ...]


class OffsetReader:
    """Reads the offsets of one topic and group.

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
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._connect = connect
        self._consumer: Consumer | None = None
        self._failures = 0
        self._topic = topic
        self._partitions = range(partitions)
        self._deadline_s = deadline_s
        self._clock = clock

    def read(self) -> OffsetReading:
        """Ask for everything. Raises NotReadyError naming the first number that is unknown at the deadline."""
        self._consumer = self._consumer or self._connect()
        try:
            reading = self._ask(self._consumer)
        except NotReadyError:
            self._failures += 1
            if self._failures % RECONNECT_AFTER == 0:
                self.close()
            raise
        self._failures = 0
        return reading

    def close(self) -> None:
        """Leave the brokers. The next reading connects again."""
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None

    def _ask(self, consumer: Consumer) -> OffsetReading:
        give_up_s = time.monotonic() + self._deadline_s

        def ask(question: Callable[..., list[TopicPartition]], timestamp: int, what: str) -> list[TopicPartition]:
            places = [TopicPartition(self._topic, number, timestamp) for number in self._partitions]
            try:
                return question(places, timeout=max(MIN_WAIT_S, give_up_s - time.monotonic()))
            except KafkaException as failed:
                raise NotReadyError(f"{what}s of {self._topic}: {failed.args[0].str()}") from failed

        committed = ask(consumer.committed, OFFSET_INVALID, "committed offset")
        beginnings = ask(consumer.offsets_for_times, EARLIEST, "beginning offset")
        ends = ask(consumer.offsets_for_times, LATEST, "end offset")
        at_s = self._clock()
        return OffsetReading(at_s, tuple(map(self._partition, beginnings, ends, committed)))

    def _partition(self, beginning: Any, end: Any, committed: Any) -> PartitionOffsets:
        """Turn the client's markers for "none" into types; what makes no sense is unknown."""
        name = f"{self._topic}/{end.partition}"
        for entry, what in ((beginning, "beginning"), (end, "end"), (committed, "committed")):
            if entry.error is not None:
                raise NotReadyError(f"{what} offset of {name}: {entry.error.str()}")
        if beginning.offset < 0 or end.offset < beginning.offset:
            raise NotReadyError(f"offsets of {name}: the broker answered {beginning.offset} to {end.offset}")
        if committed.offset == OFFSET_INVALID:
            return PartitionOffsets(beginning=beginning.offset, end=end.offset, committed=None)
        if not 0 <= committed.offset <= end.offset:
            raise NotReadyError(f"lag of {name}: committed offset {committed.offset}, end {end.offset}")
        return PartitionOffsets(beginning=beginning.offset, end=end.offset, committed=committed.offset)
