"""Where each partition ends and how far the group has committed, asked of the brokers by admin calls."""

import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from dataclasses import dataclass
from typing import Any

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from autoscaler.ports import NotReadyError


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

    connect: makes an admin client. It is called again after a broker answered with an error: the client remembers who
    led which partition in which epoch, and never asks anew, so after a restart of the brokers it would fail for ever.
    """

    def __init__(
        self,
        connect: Callable[[], AdminClient],
        *,
        topic: str,
        group: str,
        partitions: int,
        deadline_s: float = 0.8,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._connect = connect
        self._admin: AdminClient | None = None
        self._topic = topic
        self._group = group
        self._partitions = tuple(TopicPartition(topic, number) for number in range(partitions))
        self._deadline_s = deadline_s
        self._clock = clock

    def read(self) -> OffsetReading:
        """Ask for everything at once. Raises NotReadyError naming the first number that is unknown at the deadline."""
        self._admin = self._admin or self._connect()
        try:
            return self._ask(self._admin)
        except NotReadyError as unknown:
            cause = unknown.__cause__
            if isinstance(cause, KafkaException) and cause.args[0].code() > 0:  # below 0: nobody answered
                self._admin = None
            raise

    def _ask(self, admin: AdminClient) -> OffsetReading:
        asked = ConsumerGroupTopicPartitions(self._group, list(self._partitions))
        committed = admin.list_consumer_group_offsets([asked], request_timeout=self._deadline_s)
        beginnings = self._list(admin, OffsetSpec.earliest())
        ends = self._list(admin, OffsetSpec.latest())
        futures = [*committed.values(), *beginnings.values(), *ends.values()]
        wait(futures, timeout=self._deadline_s)
        at_s = self._clock()
        group_offsets = _known(committed[self._group], f"committed offsets of group {self._group}")
        of_group = {entry.partition: entry for entry in group_offsets.topic_partitions}
        return OffsetReading(
            at_s=at_s,
            partitions=tuple(
                self._partition(
                    number=place.partition,
                    beginning=_known(beginnings[place], f"beginning offset of {self._name(place.partition)}").offset,
                    end=_known(ends[place], f"end offset of {self._name(place.partition)}").offset,
                    committed=of_group.get(place.partition),
                )
                for place in self._partitions
            ),
        )

    def _list(self, admin: AdminClient, spec: Any) -> Mapping[TopicPartition, "Future[Any]"]:
        request = dict.fromkeys(self._partitions, spec)
        futures: Mapping[TopicPartition, Future[Any]] = admin.list_offsets(request, request_timeout=self._deadline_s)
        return futures

    def _partition(self, *, number: int, beginning: int, end: int, committed: Any) -> PartitionOffsets:
        """Turn the client's markers for "none" into types; what makes no sense is unknown."""
        if committed is None or committed.error is not None:
            why = "not in the answer" if committed is None else committed.error.str()
            raise NotReadyError(f"committed offset of {self._name(number)}: {why}")
        if beginning < 0 or end < beginning:
            raise NotReadyError(f"offsets of {self._name(number)}: the broker answered {beginning} to {end}")
        if committed.offset < 0:
            return PartitionOffsets(beginning=beginning, end=end, committed=None)
        if committed.offset > end:
            raise NotReadyError(f"lag of {self._name(number)}: committed offset {committed.offset} is beyond end {end}")
        return PartitionOffsets(beginning=beginning, end=end, committed=committed.offset)

    def _name(self, partition: int) -> str:
        return f"{self._topic}/{partition}"


def _known(future: "Future[Any]", what: str) -> Any:
    if not future.done():
        raise NotReadyError(f"{what}: no answer before the deadline")
    try:
        return future.result()
    except KafkaException as failed:
        raise NotReadyError(f"{what}: {failed.args[0].str()}") from failed
