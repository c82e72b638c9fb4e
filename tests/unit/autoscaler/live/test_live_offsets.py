"""Offsets from a fake client: what is known, what is unknown, and that the two are never mixed up."""

from dataclasses import dataclass, replace

import pytest
from confluent_kafka import OFFSET_INVALID, KafkaError, KafkaException, TopicPartition
from live_fakes import FakeClock

from autoscaler.live.offsets import (
    COUNT_EVERY_S,
    EARLIEST,
    RECONNECT_AFTER,
    OffsetReader,
)
from autoscaler.ports import NotReadyError


@dataclass
class Described:
    """A topic as the client describes it."""

    partitions: range
    error: KafkaError | None = None


@dataclass
class Metadata:
    topics: dict[str, Described]


@dataclass
class Entry:
    offset: int
    error: KafkaError | None = None
    partition: int = 0


Answer = list[Entry] | Exception


class FakeConsumer:
    """Answers what the attributes say, or raises them."""

    def __init__(self) -> None:
        self.beginnings: Answer = [Entry(0), Entry(10)]
        self.ends: Answer = [Entry(100), Entry(200)]
        self.committed_offsets: Answer = [Entry(90), Entry(150)]
        self.described: Described | Exception = Described(range(2))
        self.closed = False

    def list_topics(self, topic: str, timeout: float) -> Metadata:
        assert timeout > 0
        if isinstance(self.described, Exception):
            raise self.described
        return Metadata({topic: self.described})

    def committed(self, places: list[TopicPartition], timeout: float) -> list[Entry]:
        return self._answer(self.committed_offsets, places, timeout)

    def offsets_for_times(self, places: list[TopicPartition], timeout: float) -> list[Entry]:
        return self._answer(self.beginnings if places[0].offset == EARLIEST else self.ends, places, timeout)

    def close(self) -> None:
        self.closed = True

    def _answer(self, answer: Answer, places: list[TopicPartition], timeout: float) -> list[Entry]:
        assert timeout > 0
        if isinstance(answer, Exception):
            raise answer
        return [replace(entry, partition=place.partition) for entry, place in zip(answer, places, strict=True)]


@pytest.fixture
def consumer() -> FakeConsumer:
    return FakeConsumer()


def reader_of(*consumers: FakeConsumer, clock: FakeClock | None = None) -> OffsetReader:
    several = iter(consumers)
    return OffsetReader(lambda: next(several), topic="requests", partitions=2, clock=clock or FakeClock())


@pytest.fixture
def reader(consumer: FakeConsumer) -> OffsetReader:
    return reader_of(consumer)


def lags(reader: OffsetReader) -> list[int]:
    return [partition.lag for partition in reader.read()[1]]


def test_lag_is_produced_minus_committed(reader: OffsetReader) -> None:
    assert lags(reader) == [10, 50]


def test_a_group_that_never_committed_lags_by_all_that_is_stored(reader: OffsetReader, consumer: FakeConsumer) -> None:
    consumer.committed_offsets = [Entry(OFFSET_INVALID), Entry(OFFSET_INVALID)]
    assert lags(reader) == [100, 190]


def failure(code: int) -> KafkaException:
    return KafkaException(KafkaError(code))


@pytest.mark.parametrize(
    ("spoil", "named"),
    [
        ({"ends": failure(KafkaError._TIMED_OUT)}, "end offsets of requests: Local: Timed out"),
        (
            {"ends": [Entry(100), Entry(-1, KafkaError(KafkaError.FENCED_LEADER_EPOCH))]},
            "end offset of requests/1: Broker",
        ),
        ({"ends": [Entry(-1), Entry(200)]}, "offsets of requests/0: the broker answered 0 to -1"),
        ({"committed_offsets": [Entry(101), Entry(1)]}, "lag of requests/0: committed offset 101, end 100"),
        (
            {"committed_offsets": [Entry(OFFSET_INVALID, KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)), Entry(1)]},
            "committed offset of requests/0: Broker: Unknown topic",
        ),
    ],
)
def test_what_is_unknown_is_named_and_never_a_number(
    reader: OffsetReader, consumer: FakeConsumer, spoil: dict[str, Answer], named: str
) -> None:
    for name, value in spoil.items():
        setattr(consumer, name, value)
    with pytest.raises(NotReadyError) as missing:
        reader.read()
    assert named in missing.value.missing


def test_a_client_that_keeps_failing_is_replaced() -> None:
    stale = FakeConsumer()
    stale.ends = failure(KafkaError.FENCED_LEADER_EPOCH)
    reader = reader_of(stale, FakeConsumer())
    for _ in range(RECONNECT_AFTER):
        assert not stale.closed
        with pytest.raises(NotReadyError, match="Leader epoch"):
            reader.read()
    assert stale.closed
    assert lags(reader) == [10, 50]


def test_a_topic_that_grows_is_read_whole_from_the_next_count_on(consumer: FakeConsumer) -> None:
    clock = FakeClock()
    reader = reader_of(consumer, clock=clock)
    assert lags(reader) == [10, 50]
    consumer.described = Described(range(3))
    consumer.beginnings, consumer.ends = [Entry(0), Entry(10), Entry(0)], [Entry(100), Entry(200), Entry(5)]
    consumer.committed_offsets = [Entry(90), Entry(150), Entry(OFFSET_INVALID)]
    clock.advance(COUNT_EVERY_S)
    assert lags(reader) == [10, 50, 5]
    assert reader.partitions == 3
