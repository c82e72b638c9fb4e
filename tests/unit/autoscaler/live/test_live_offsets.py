"""Offsets from a fake client. Known and unknown values are never mixed up."""

from dataclasses import dataclass, replace

import pytest
from confluent_kafka import OFFSET_INVALID, KafkaError, KafkaException, TopicPartition
from live_fakes import FakeClock

from autoscaler.live.offsets import (
    BEGINNINGS_EVERY_S,
    EARLIEST,
    FAILURES_BEFORE_RECONNECT,
    PARTITIONS_PER_REQUEST,
    UNCOMMITTED,
    OffsetReader,
)
from autoscaler.live.partition_offsets import OPEN_TRANSACTION_S
from autoscaler.ports import NotReadyError


@dataclass
class Led:
    leader: int = 1


@dataclass
class Described:
    """Metadata of a topic."""

    partitions: dict[int, Led]
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
    """Answers with its attributes, or raises them."""

    def __init__(self) -> None:
        self.beginnings: Answer = [Entry(0), Entry(10)]
        self.ends: Answer = [Entry(100), Entry(200)]
        self.committed_offsets: Answer = [Entry(90), Entry(150)]
        self.described: Described | Exception = Described({0: Led(), 1: Led()})
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


def failure(code: int) -> KafkaException:
    return KafkaException(KafkaError(code))


@pytest.fixture
def consumer() -> FakeConsumer:
    return FakeConsumer()


def reader_of(
    *consumers: FakeConsumer,
    clock: FakeClock | None = None,
    highs: FakeConsumer | None = None,
    is_foreign: bool = False,
) -> OffsetReader:
    several = iter(consumers)
    if highs is None:
        highs = FakeConsumer()
        highs.ends = failure(KafkaError._TIMED_OUT)
    return OffsetReader(
        lambda isolation: highs if isolation == UNCOMMITTED else next(several),
        topic="requests", partitions=2, is_foreign=is_foreign, clock=clock or FakeClock(),
    )  # fmt: skip


@pytest.fixture
def reader(consumer: FakeConsumer) -> OffsetReader:
    return reader_of(consumer)


def lags(reader: OffsetReader) -> list[int | None]:
    return [None if None in (one.end, one.committed) else one.end - one.committed for one in reader.read()[1]]  # type: ignore[operator]


def test_beginnings_are_read_every_10_s_and_at_once_if_a_log_ends_before_its_beginning(
    consumer: FakeConsumer,
) -> None:
    clock = FakeClock()
    reader = reader_of(consumer, clock=clock)
    consumer.committed_offsets = [Entry(OFFSET_INVALID), Entry(OFFSET_INVALID)]
    assert lags(reader) == [100, 190]
    consumer.beginnings = [Entry(50), Entry(10)]
    assert lags(reader) == [100, 190]
    clock.advance(BEGINNINGS_EVERY_S)
    assert lags(reader) == [50, 190]
    consumer.beginnings, consumer.ends = [Entry(0), Entry(10)], [Entry(3), Entry(200)]  # re-created
    assert lags(reader) == [None, 190]
    assert lags(reader) == [3, 190]


@pytest.mark.parametrize(
    ("spoil", "known", "named"),
    [
        (
            {"ends": [Entry(100), Entry(-1, KafkaError(KafkaError.FENCED_LEADER_EPOCH))]},
            [10, None],
            "end offset of requests/1: Broker",
        ),
        ({"ends": [Entry(-1), Entry(200)]}, [None, 50], "offsets of requests/0: the broker answered 0 to -1"),
        (
            {"committed_offsets": [Entry(101), Entry(150)]},
            [None, 50],
            "lag of requests/0: committed offset 101 is not between 0 and the end offset 100",
        ),
        (
            {"committed_offsets": [Entry(OFFSET_INVALID, KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)), Entry(150)]},
            [None, 50],
            "committed offset of requests/0: Broker: Unknown topic",
        ),
        ({"committed_offsets": failure(KafkaError._TIMED_OUT)}, [None, None], "committed offsets of requests: Local:"),
    ],
)
def test_an_unknown_offset_is_none_with_a_reason_and_affects_no_other_partition(
    reader: OffsetReader, consumer: FakeConsumer, spoil: dict[str, Answer], known: list[int | None], named: str
) -> None:
    for name, value in spoil.items():
        setattr(consumer, name, value)
    assert lags(reader) == known
    assert any(named in one.problem for one in reader.read()[1])


def test_offsets_of_a_large_topic_are_read_by_several_requests(
    reader: OffsetReader, consumer: FakeConsumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = 2 * PARTITIONS_PER_REQUEST + 1
    consumer.described = Described({number: Led() for number in range(many)})
    monkeypatch.setattr(
        consumer, "_answer", lambda known, at, _: [replace(known[0], partition=p.partition) for p in at]
    )
    assert lags(reader) == [10] * many


def test_slow_metadata_delays_a_start(reader: OffsetReader, consumer: FakeConsumer) -> None:
    described = consumer.described

    def list_topics(topic: str, timeout: float) -> Metadata:
        consumer.described = described if timeout > 1 else KafkaException(KafkaError(KafkaError._TIMED_OUT))
        return FakeConsumer.list_topics(consumer, topic, timeout)

    consumer.list_topics = list_topics  # type: ignore[method-assign]
    with pytest.raises(NotReadyError):
        reader.read()
    assert reader.count_partitions(within_s=10) == 2
    assert [partition.end for partition in reader.read()[1]] == [100, 200]


def test_a_reading_without_any_offset_raises(reader: OffsetReader, consumer: FakeConsumer) -> None:
    consumer.ends = failure(KafkaError._TIMED_OUT)
    with pytest.raises(NotReadyError, match="end offsets of requests: Local: Timed out"):
        reader.read()


def test_a_client_that_keeps_failing_is_re_created() -> None:
    stale = FakeConsumer()
    stale.ends = failure(KafkaError.FENCED_LEADER_EPOCH)
    reader = reader_of(stale, FakeConsumer())
    for _ in range(FAILURES_BEFORE_RECONNECT):
        assert not stale.closed
        with pytest.raises(NotReadyError, match="Leader epoch"):
            reader.read()
    assert stale.closed
    assert lags(reader) == [10, 50]


def test_a_foreign_group_may_read_beyond_the_last_stable_offset_and_an_open_transaction_is_reported(
    consumer: FakeConsumer,
) -> None:
    clock, highs = FakeClock(), FakeConsumer()
    highs.ends, consumer.committed_offsets = [Entry(150), Entry(200)], [Entry(140), Entry(150)]
    reader = reader_of(consumer, clock=clock, highs=highs, is_foreign=True)
    assert lags(reader) == [0, 50], "offset 100 is the last stable one"
    clock.advance(OPEN_TRANSACTION_S)
    assert [one.hidden for one in reader.read()[1]] == [
        "50 records of requests/0 follow an open transaction, for 10 s",
        "",
    ]
    consumer.ends = [Entry(120), Entry(200)]
    assert [one.hidden for one in reader.read()[1]] == ["", ""], "another transaction is open"
    assert lags(reader_of(consumer, highs=highs)) == [None, 50], "our own group reads committed records only"


def test_where_a_foreign_group_begins_without_a_valid_commit_is_unknown(consumer: FakeConsumer) -> None:
    consumer.committed_offsets = [Entry(OFFSET_INVALID), Entry(9)]
    read = reader_of(consumer, is_foreign=True).read()[1]
    assert [(one.committed, one.problem) for one in read] == [(None, ""), (None, "")]
