"""Where each partition ends and how far the group has committed, asked of the brokers.

Each leader is asked by itself: one that does not answer costs what is known of its own partitions, not of all.

By a consumer that never joins, not by the admin client: in librdkafka 2.16 an admin request for a group's offsets whose
connection drops aborts the whole process (use after free, librdkafka pull request 5397).
"""

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Final

from confluent_kafka import OFFSET_INVALID, Consumer, KafkaException, TopicPartition

from autoscaler.live.kafka import client_config
from autoscaler.ports import NotReadyError
from contracts.clock import monotonic_s
from contracts.connection import Connection
from contracts.topics import ScaledGroup

EARLIEST: Final = -2
"""In place of a timestamp, Kafka's protocol takes this for the beginning of a partition, and LATEST for its end."""
LATEST: Final = -1
RECONNECT_AFTER: Final = 3
"""Failed readings in a row before the client is made anew; then twice as many, and again: a login may take longer than
the readings do, and a client that is closed within it never gets in."""
MOST_PATIENCE: Final = 16 * RECONNECT_AFTER
COUNT_EVERY_S: Final = 2.0
"""How often the number of partitions is looked at: topics grow rarely, and the question costs a millisecond."""
BEGINNINGS_EVERY_S: Final = 10.0
"""How often the beginnings of partitions are asked for: logs are cut rarely. Where one ends before it, at once."""
MIN_WAIT_S: Final = 0.05
NO_LEADER: Final = -1
AT_ONCE: Final = 500
"""Partitions in a question. librdkafka's work grows with the square of their number: it takes half a second to ask for
ten thousand at once, and a tenth of that for twenty times five hundred."""


@dataclass(frozen=True, slots=True)
class PartitionOffsets:
    """Of one partition, as far as they are known."""

    end: int | None
    done: int | None
    """Up to here the group has committed, or nothing is stored. A group that has not committed yet starts at the
    beginning (its reset is `earliest`), so that is a known state."""
    beginning: int | None = None
    why: str = ""


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
        clock: Callable[[], float] = monotonic_s,
    ) -> None:
        self._connect, self._clock, self._deadline_s = connect, clock, deadline_s
        self._consumer: Consumer | None = None
        self._failures, self._patience = 0, RECONNECT_AFTER
        self._topic, self._least = topic, partitions
        self._counted_s = self._begun_s = -math.inf
        self.partitions = partitions
        self._leaders: Mapping[int, Sequence[int]] = {}
        """Broker → partitions that it leads."""
        self._answering: frozenset[int] = frozenset()
        """Leaders that answered when they were asked last."""
        self._beginnings: dict[int, int | str] = {}

    @classmethod
    def of(cls, connection: Connection, scaled: ScaledGroup, interval_s: float, partitions: int = 0) -> "OffsetReader":
        """Return the reader of a group that is looked at every `interval_s`."""
        group, topic = scaled.group_in(connection.namespace), scaled.topic_in(connection.namespace)
        connect = partial(Consumer, client_config(connection, group_id=group, enable_auto_commit=False))
        return cls(connect, topic=topic, partitions=partitions, deadline_s=min(0.8, interval_s / 2))

    def read(self) -> tuple[float, tuple[PartitionOffsets, ...]]:
        """Ask for everything: when the end offsets arrived (seconds, by the clock), and all partitions by number.

        Raises NotReadyError with the first reason where the end of no partition at all is known at the deadline.
        """
        try:
            if self._clock() - self._counted_s >= COUNT_EVERY_S:
                self.count()
            at_s, found = self._ask(self._connected())
            if all(one.end is None for one in found):
                raise NotReadyError(next((one.why for one in found if one.why), f"{self._topic} has no partitions"))
        except NotReadyError:
            self._failed()
            raise
        if any(one.why for one in found):
            self._failed()
        else:
            self._failures, self._patience = 0, RECONNECT_AFTER
        return at_s, found

    def ends(self) -> tuple[float, tuple[int | None, ...]]:
        """Ask for the end offsets only: when they arrived (seconds, by the clock), and each partition's where known.

        Only who answered the last `read` is asked: nobody waits for the others ten times a second.
        Raises NotReadyError where none is known.
        """
        known: dict[int, int] = {}
        for leader in self._answering:
            with suppress(NotReadyError):
                ask = self._connected().offsets_for_times
                answered = self._asked(ask, self._leaders[leader], LATEST, "end", self._deadline_s / 4)
                known |= {number: one for number, one in answered.items() if isinstance(one, int)}
        if not known:
            raise NotReadyError(f"end offsets of {self._topic}: none is known")
        return self._clock(), tuple(known.get(number) for number in range(self.partitions))

    def count(self) -> int:
        """Ask how many partitions the topic has, and who leads them; return how many. Raises NotReadyError."""
        try:
            described = self._connected().list_topics(self._topic, timeout=self._deadline_s / 2).topics[self._topic]
        except KafkaException as failed:
            raise NotReadyError(f"number of partitions of {self._topic}: {failed.args[0].str()}") from failed
        if described.error is not None:
            raise NotReadyError(f"number of partitions of {self._topic}: {described.error.str()}")
        self._counted_s = self._clock()
        self.partitions = max(self._least, len(described.partitions))
        led = defaultdict[int, list[int]](list)
        for number, one in sorted(described.partitions.items()):
            if one.leader != NO_LEADER:
                led[one.leader].append(number)
        self._leaders, self._answering = led, self._answering & led.keys()
        return self.partitions

    def close(self) -> None:
        """Leave the brokers. The next reading connects again."""
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None

    def _connected(self) -> Consumer:
        self._consumer = self._consumer or self._connect()
        return self._consumer

    def _failed(self) -> None:
        self._counted_s = self._begun_s = -math.inf
        self._failures += 1
        if self._failures == self._patience:
            self._failures, self._patience = 0, min(2 * self._patience, MOST_PATIENCE)
            self.close()

    def _ask(self, consumer: Consumer) -> tuple[float, tuple[PartitionOffsets, ...]]:
        """Ask the coordinator, then each leader: first those that answered last time, who do not take long."""
        give_up_s = self._clock() + self._deadline_s
        every = range(self.partitions)
        try:
            committed = self._asked(consumer.committed, every, OFFSET_INVALID, "committed", self._deadline_s / 2)
        except NotReadyError as missing:
            committed = dict.fromkeys(every, missing.missing)
        if self._clock() - self._begun_s >= BEGINNINGS_EVERY_S:
            self._beginnings, self._begun_s = {}, self._clock()
        ends: dict[int, int | str] = {}
        answering = set()
        for leader in sorted(self._leaders, key=lambda one: (one not in self._answering, one)):
            led = self._leaders[leader]
            known = leader in self._answering or not self._answering
            left_s = max(MIN_WAIT_S, give_up_s - self._clock()) / (1 if known else 4)
            try:
                if not self._beginnings.keys() >= set(led):
                    self._beginnings |= self._asked(consumer.offsets_for_times, led, EARLIEST, "beginning", left_s)
                ends |= self._asked(consumer.offsets_for_times, led, LATEST, "end", left_s)
                answering.add(leader)
            except NotReadyError as missing:
                ends |= dict.fromkeys(led, missing.missing)
        self._answering = frozenset(answering)
        at_s, begun = self._clock(), self._beginnings
        return at_s, tuple(self._partition(n, begun.get(n), ends.get(n), committed.get(n)) for n in every)

    def _asked(
        self, ask: Callable[..., list[TopicPartition]], numbers: Sequence[int], at: int, what: str, timeout_s: float
    ) -> dict[int, int | str]:
        """Ask a few hundred at a time, for `timeout_s` in all: partition → offset, or why it is unknown.

        Raises NotReadyError where nobody answers.
        """
        give_up_s = self._clock() + timeout_s
        found: dict[int, int | str] = {}
        try:
            for first in range(0, len(numbers), AT_ONCE):
                places = [TopicPartition(self._topic, number, at) for number in numbers[first : first + AT_ONCE]]
                for one in ask(places, timeout=max(MIN_WAIT_S, give_up_s - self._clock())):
                    why = one.error and f"{what} offset of {self._topic}/{one.partition}: {one.error.str()}"
                    found[one.partition] = why or one.offset
        except KafkaException as failed:
            raise NotReadyError(f"{what} offsets of {self._topic}: {failed.args[0].str()}") from failed
        return found

    def _partition(
        self, number: int, beginning: int | str | None, end: int | str | None, committed: int | str | None
    ) -> PartitionOffsets:
        """Turn the client's markers for "none" into types; what makes no sense is unknown."""
        name = f"{self._topic}/{number}"
        why = next((one for one in (end, beginning, committed) if isinstance(one, str)), "")
        if end is None:
            why = why or f"end offset of {name}: it has no leader"
        start, last, done = (one if isinstance(one, int) else None for one in (beginning, end, committed))
        if start is not None and last is not None and (start < 0 or last < start):
            why, start, last = f"offsets of {name}: the broker answered {start} to {last}", None, None
        if done is not None and done != OFFSET_INVALID and (done < 0 or (last is not None and done > last)):
            why, done = f"lag of {name}: committed offset {done}, end {last}", None
        if done is not None:
            done = start if done == OFFSET_INVALID else max(done, start or 0)
        return PartitionOffsets(last, done, start, why)
