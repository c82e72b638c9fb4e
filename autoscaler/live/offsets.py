"""End offsets and committed offsets of one group, read from the brokers.

Each leader is queried separately, so a leader that does not answer affects only its own partitions.

The reader is a consumer that never joins. It is not an admin client, because of a fault of librdkafka 2.16: an admin
request for the offsets of a group aborts the process if its connection drops (use after free, pull request 5397).
"""

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from itertools import chain
from typing import Any, Final

from confluent_kafka import OFFSET_INVALID, Consumer, KafkaException, TopicPartition

from autoscaler.live.partition_offsets import PartitionOffsets, PlausibleOffsets
from autoscaler.ports import NotReadyError
from contracts.clock import monotonic_s
from contracts.connection import Connection
from contracts.preflight import client_config
from contracts.topics import ScaledGroup

EARLIEST: Final = -2
"""Timestamp for the first offset in Kafka's protocol. LATEST stands for the end offset."""
LATEST: Final = -1
FAILURES_BEFORE_RECONNECT: Final = 3
"""Consecutive failed readings before the client is re-created. The number doubles each time, because a login may take
longer than these readings."""
MAX_FAILURES_BEFORE_RECONNECT: Final = 16 * FAILURES_BEFORE_RECONNECT
COUNT_EVERY_S: Final = 2.0
"""Interval of reading the number of partitions. Topics grow rarely, and the request takes a millisecond."""
BEGINNINGS_EVERY_S: Final = 10.0
"""Interval of reading the first offsets. Logs are truncated rarely."""
MIN_WAIT_S: Final = 0.05
NO_LEADER: Final = -1
COMMITTED, UNCOMMITTED = "read_committed", "read_uncommitted"
PARTITIONS_PER_REQUEST: Final = 500
"""Most partitions in a request. librdkafka's time grows with the square of their number: 10,000 partitions take half a
second in one request, a tenth of that in twenty requests."""
CONCURRENT_REQUESTS: Final = 4


class OffsetReader:
    """Reads the offsets of one topic and group.

    partitions: minimum number of partitions. The number is read every 2 s, because a topic may grow.
    connect: creates a consumer with the group's id and an isolation level. The consumer never subscribes, so it is no
    member. It is re-created after errors, because a client may keep outdated leaders after a restart of the brokers.
    is_foreign: the group may read uncommitted records, and its start without a commit is unknown.
    """

    def __init__(
        self,
        connect: Callable[[str], Consumer],
        *,
        topic: str,
        partitions: int = 0,
        deadline_s: float = 0.8,
        is_foreign: bool = False,
        clock: Callable[[], float] = monotonic_s,
    ) -> None:
        self._connect, self._clock, self._deadline_s, self._is_foreign = connect, clock, deadline_s, is_foreign
        self._consumers: dict[str, Consumer] = {}  # by isolation level
        self._failures, self._failures_allowed = 0, FAILURES_BEFORE_RECONNECT
        self._topic, self._least = topic, partitions
        self._counted_s = self._begun_s = self._highs_s = -math.inf
        self.partitions = partitions
        self._leaders: Mapping[int, Sequence[int]] = {}
        """Broker id → partitions that it leads."""
        self._answering: frozenset[int] = frozenset()
        """Leaders that answered the last request."""
        self._beginnings: dict[int, int | str] = {}
        self._highs: dict[int, int | str] = {}  # high watermarks
        self._plausible = PlausibleOffsets(topic, clock, is_foreign=is_foreign)

    @classmethod
    def of(cls, connection: Connection, scaled: ScaledGroup, interval_s: float, **options: Any) -> "OffsetReader":
        """Return a reader for a group that is observed every `interval_s` seconds."""
        group, topic = scaled.group_in(connection.namespace), scaled.topic_in(connection.namespace)
        config = client_config(connection, group_id=group, enable_auto_commit=False)
        deadline_s = min(0.8, interval_s / 2)
        return cls(
            lambda level: Consumer(config | {"isolation.level": level}), topic=topic, deadline_s=deadline_s, **options
        )

    def read(self) -> tuple[float, tuple[PartitionOffsets, ...]]:
        """Return the arrival time of the end offsets (seconds, by the clock), and the offsets of all partitions.

        Raises NotReadyError with the first problem if no end offset is known at the deadline.
        """
        try:
            if self._clock() - self._counted_s >= COUNT_EVERY_S:
                self.count_partitions()
            at_s, found = self._read_all(self._connected())
            problems = [partition.problem for partition in found if partition.problem]
            if all(partition.end is None for partition in found):
                raise NotReadyError(next(iter(problems), f"{self._topic} has no partitions"))
        except NotReadyError:
            self._failed()
            raise
        if problems:
            self._failed()
        else:
            self._failures, self._failures_allowed = 0, FAILURES_BEFORE_RECONNECT
        return at_s, found

    def read_ends(self) -> tuple[float, tuple[int | None, ...]]:
        """Return the arrival time of the end offsets (seconds, by the clock), and each partition's end offset.

        Queries only leaders that answered the last `read`. Raises NotReadyError if no end offset is known.
        """
        known: dict[int, int] = {}
        for leader in self._answering:
            with suppress(NotReadyError):
                request = self._connected().offsets_for_times
                answer = self._query(request, self._leaders[leader], LATEST, "end", self._deadline_s / 4)
                known |= {number: offset for number, offset in answer.items() if isinstance(offset, int)}
        if not known:
            raise NotReadyError(f"end offsets of {self._topic}: no leader answered")
        return self._clock(), tuple(known.get(number) for number in range(self.partitions))

    def count_partitions(self, within_s: float = 0.0) -> int:
        """Count the partitions and read their leaders. within_s: limit; 0: half the deadline. Raises NotReadyError."""
        try:
            found = self._connected().list_topics(self._topic, timeout=within_s or self._deadline_s / 2)
            described = found.topics[self._topic]
        except KafkaException as failed:
            raise NotReadyError(f"number of partitions of {self._topic}: {failed.args[0].str()}") from failed
        if described.error is not None:
            raise NotReadyError(f"number of partitions of {self._topic}: {described.error.str()}")
        self._counted_s = self._clock()
        self.partitions = max(self._least, len(described.partitions))
        led = defaultdict[int, list[int]](list)
        for number, partition in sorted(described.partitions.items()):
            if partition.leader != NO_LEADER:
                led[partition.leader].append(number)
        self._leaders, self._answering = led, self._answering & led.keys()
        return self.partitions

    def close(self) -> None:
        """Close the clients. The next reading connects again."""
        while self._consumers:
            self._consumers.popitem()[1].close()

    def _connected(self, isolation: str = COMMITTED) -> Consumer:
        if isolation not in self._consumers:
            self._consumers[isolation] = self._connect(isolation)
        return self._consumers[isolation]

    def _failed(self) -> None:
        self._counted_s = self._begun_s = -math.inf
        self._failures += 1
        if self._failures == self._failures_allowed:
            self._failures, self._failures_allowed = 0, min(2 * self._failures_allowed, MAX_FAILURES_BEFORE_RECONNECT)
            self.close()

    def _read_all(self, consumer: Consumer) -> tuple[float, tuple[PartitionOffsets, ...]]:
        """Query the coordinator, then each leader. Leaders that answered last time come first: they are fast."""
        give_up_s = self._clock() + self._deadline_s
        every = range(self.partitions)
        try:
            committed = self._query(consumer.committed, every, OFFSET_INVALID, "committed", self._deadline_s / 2)
        except NotReadyError as missing:
            committed = dict.fromkeys(every, str(missing))
        if self._clock() - self._begun_s >= BEGINNINGS_EVERY_S:
            self._beginnings, self._begun_s = {}, self._clock()
        if is_due := self._is_foreign or self._clock() - self._highs_s >= COUNT_EVERY_S:
            self._highs, self._highs_s = {}, self._clock()
        ends: dict[int, int | str] = {}
        answering = set()
        for leader in sorted(self._leaders, key=lambda broker: (broker not in self._answering, broker)):
            led = self._leaders[leader]
            known = leader in self._answering or not self._answering
            left_s = max(MIN_WAIT_S, give_up_s - self._clock()) / (1 if known else 4)
            try:
                if not self._beginnings.keys() >= set(led):
                    self._beginnings |= self._query(consumer.offsets_for_times, led, EARLIEST, "beginning", left_s)
                if is_due:  # first: else records that arrive between both readings look hidden
                    with suppress(NotReadyError):
                        request = self._connected(UNCOMMITTED).offsets_for_times
                        self._highs |= self._query(request, led, LATEST, "high watermark", left_s / 4)
                ends |= self._query(consumer.offsets_for_times, led, LATEST, "end", left_s)
                answering.add(leader)
            except NotReadyError as missing:
                ends |= dict.fromkeys(led, str(missing))
        self._answering = frozenset(answering)
        at_s, answers = self._clock(), (self._beginnings, ends, committed, self._highs)
        return at_s, tuple(self._plausible.offsets(n, *(found.get(n) for found in answers)) for n in every)

    def _query(
        self, request: Callable[..., list[TopicPartition]], numbers: Sequence[int], at: int, what: str, timeout_s: float
    ) -> dict[int, int | str]:
        """Return partition → offset, or why it is unknown. All requests together take at most `timeout_s`.

        what: kind of offset, for messages. Raises NotReadyError without any answer.
        """
        give_up_s = self._clock() + timeout_s
        found: dict[int, int | str] = {}

        def ask(first: int) -> list[TopicPartition]:
            batch = numbers[first : first + PARTITIONS_PER_REQUEST]
            places = [TopicPartition(self._topic, number, at) for number in batch]
            return request(places, timeout=max(MIN_WAIT_S, give_up_s - self._clock()))

        try:
            firsts = range(0, len(numbers), PARTITIONS_PER_REQUEST)
            with ThreadPoolExecutor(CONCURRENT_REQUESTS) if len(firsts) > 1 else nullcontext() as threads:
                for answer in chain.from_iterable((threads.map if threads else map)(ask, firsts)):
                    number, error = answer.partition, answer.error
                    unknown = error and f"{what} offset of {self._topic}/{number}: {error.str()}"
                    found[number] = unknown or answer.offset
        except KafkaException as failed:
            raise NotReadyError(f"{what} offsets of {self._topic}: {failed.args[0].str()}") from failed
        return found
