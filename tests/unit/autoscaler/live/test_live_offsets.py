"""Offsets from a fake admin client: what is known, what is unknown, and that the two are never mixed up."""

from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

import pytest
from confluent_kafka import OFFSET_INVALID, KafkaError, KafkaException, TopicPartition
from live_fakes import FakeClock

from autoscaler.live.loads import LoadReader
from autoscaler.live.offsets import OffsetReader, OffsetReading, PartitionOffsets
from autoscaler.ports import NotReadyError


@dataclass
class Offset:
    offset: int


@dataclass
class Committed:
    partition: int
    offset: int
    error: KafkaError | None = None


@dataclass
class Answer:
    topic_partitions: list[Committed]


def done(value: Any) -> "Future[Any]":
    future: Future[Any] = Future()
    if isinstance(value, Exception):
        future.set_exception(value)
    elif value is not None:
        future.set_result(value)
    return future


class FakeAdmin:
    """Answers what the attributes say; None: never."""

    def __init__(self) -> None:
        self.beginnings: list[Any] = [Offset(0), Offset(10)]
        self.ends: list[Any] = [Offset(100), Offset(200)]
        self.committed: Any = Answer([Committed(0, 90), Committed(1, 150)])
        self._asked = 0

    def list_offsets(self, request: dict[TopicPartition, Any], **_: Any) -> dict[TopicPartition, "Future[Any]"]:
        self._asked += 1
        answers = self.beginnings if self._asked % 2 else self.ends
        return {place: done(answer) for place, answer in zip(request, answers, strict=True)}

    def list_consumer_group_offsets(self, request: list[Any], **_: Any) -> dict[str, "Future[Any]"]:
        return {request[0].group_id: done(self.committed)}


@pytest.fixture
def admin() -> FakeAdmin:
    return FakeAdmin()


@pytest.fixture
def reader(admin: FakeAdmin) -> OffsetReader:
    return OffsetReader(
        lambda: admin, topic="requests", group="payment", partitions=2, deadline_s=0.01, clock=FakeClock()
    )


def lags(reader: OffsetReader) -> list[int]:
    return [partition.lag for partition in reader.read().partitions]


def test_lag_is_produced_minus_committed(reader: OffsetReader) -> None:
    assert lags(reader) == [10, 50]


def test_a_group_that_never_committed_lags_by_all_that_is_stored(reader: OffsetReader, admin: FakeAdmin) -> None:
    admin.committed = Answer([Committed(0, OFFSET_INVALID), Committed(1, OFFSET_INVALID)])
    assert lags(reader) == [100, 190]
    assert reader.read().partitions[1].committed is None


def test_events_that_retention_took_are_no_lag(reader: OffsetReader, admin: FakeAdmin) -> None:
    admin.committed = Answer([Committed(0, 90), Committed(1, 3)])
    assert lags(reader) == [10, 190]


def failure(code: int) -> KafkaException:
    return KafkaException(KafkaError(code))


@pytest.mark.parametrize(
    ("spoil", "named"),
    [
        ({"ends": [Offset(100), None]}, "end offset of requests/1: no answer before the deadline"),
        ({"ends": [failure(KafkaError._TIMED_OUT), Offset(1)]}, "end offset of requests/0: Local: Timed out"),
        ({"beginnings": [Offset(0), None]}, "beginning offset of requests/1: no answer"),
        ({"ends": [Offset(-1), Offset(200)]}, "offsets of requests/0: the broker answered 0 to -1"),
        ({"committed": None}, "committed offsets of group payment: no answer"),
        ({"committed": failure(KafkaError.COORDINATOR_LOAD_IN_PROGRESS)}, "committed offsets of group payment: Broker"),
        ({"committed": Answer([Committed(0, 1)])}, "committed offset of requests/1: not in the answer"),
        ({"committed": Answer([Committed(0, 101), Committed(1, 1)])}, "committed offset 101 is beyond end 100"),
        (
            {"committed": Answer([Committed(0, -1001, KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)), Committed(1, 1)])},
            "committed offset of requests/0: Broker: Unknown topic",
        ),
    ],
)
def test_what_is_unknown_is_named_and_never_a_number(
    reader: OffsetReader, admin: FakeAdmin, spoil: dict[str, Any], named: str
) -> None:
    for name, value in spoil.items():
        setattr(admin, name, value)
    with pytest.raises(NotReadyError) as missing:
        reader.read()
    assert named in missing.value.missing


def test_after_an_error_of_the_broker_the_next_reading_has_a_new_client() -> None:
    stale, good = FakeAdmin(), FakeAdmin()
    stale.ends = [failure(KafkaError.FENCED_LEADER_EPOCH), Offset(200)]
    clients = iter([stale, good])
    reader = OffsetReader(lambda: next(clients), topic="requests", group="payment", partitions=2, deadline_s=0.01)
    with pytest.raises(NotReadyError, match="Leader epoch"):
        reader.read()
    assert lags(reader) == [10, 50]
    assert lags(reader) == [10, 50]


def reading(at_s: float, *ends: int) -> OffsetReading:
    return OffsetReading(at_s, tuple(PartitionOffsets(beginning=0, end=end, committed=0) for end in ends))


def test_the_arrival_rate_takes_two_readings_and_the_time_between_them() -> None:
    readings = iter([reading(10.0, 100, 0), reading(12.0, 180, 1)])
    loads = LoadReader(lambda: next(readings))
    with pytest.raises(NotReadyError, match="arrival rate of partition 0, 1"):
        loads.read()
    at_s, partitions = loads.read()
    assert at_s == 12.0
    assert [(load.arrival_rate, load.lag) for load in partitions] == [(40.0, 180), (0.5, 1)]


def test_a_topic_made_anew_has_no_rate_until_it_was_read_twice() -> None:
    readings = iter([reading(10.0, 100), reading(11.0, 5), reading(12.0, 25)])
    loads = LoadReader(lambda: next(readings))
    for _ in range(2):
        with pytest.raises(NotReadyError, match="arrival rate"):
            loads.read()
    assert loads.read()[1][0].arrival_rate == 20.0
