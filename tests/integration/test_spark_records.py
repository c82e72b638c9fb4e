"""Kafka's records become event rows, by Spark: which event, its times, its first completion, what was refused."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from spark_helpers import SPARK, spark

from contracts.topics import Topic
from report.spark.events import event_rows, typed_records
from report.stored import COLUMN_OF

pytestmark = [*SPARK, pytest.mark.long]

KAFKA_ROW = (
    "topic string, partition int, offset long, key binary, value binary, timestamp timestamp, "
    "headers array<struct<key: string, value: binary>>"
)
PLACED, REQUESTED, SETTLED = Topic.ORDERS_PLACED, Topic.PAYMENTS_REQUESTED, Topic.PAYMENTS_SETTLED
NAMES = {f"run.{topic}": topic for topic in COLUMN_OF}


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    yield from spark(tmp_path_factory.mktemp("spark"))


def kafka_row(topic: str, offset: int, value: str, *, key: str | None = None, **headers: str) -> tuple[Any, ...]:
    stamp = datetime(2026, 1, 5, 10, 0, 0, tzinfo=UTC)
    head = [(name, text.encode()) for name, text in headers.items()]
    return (f"run.{topic}", 0, offset, key.encode() if key else None, value.encode(), stamp, head)


def records(session: Any, *rows: tuple[Any, ...]) -> Any:
    return typed_records(session.createDataFrame(list(rows), KAFKA_ROW), NAMES)


def settled(
    order: str, offset: int, done_us: int, *, replica: str = "payment-0", accepted: bool = True
) -> tuple[Any, ...]:
    timeline = {"intended_us": 0, "placed_us": 10, "received_us": done_us - 5, "done_us": done_us}
    timeline |= {"partition": 0, "offset": offset, "replica": replica}
    value = {"order_id": order, "payment_id": "p", "accepted": accepted, "timeline": timeline}
    return kafka_row(SETTLED, offset, json.dumps(value))


def test_a_record_is_known_by_its_order_then_its_key_then_its_place(session: Any) -> None:
    found = records(
        session,
        kafka_row(PLACED, 0, '{"order_id": "o-1"}', key="k-1"),
        kafka_row(PLACED, 1, "not json", key="k-2"),
        kafka_row(PLACED, 2, "not json"),
    ).collect()
    assert {row.location: row.event_id for row in found} == {
        "run.orders.placed/0/0": "o-1",
        "run.orders.placed/0/1": "k-2",
        "run.orders.placed/0/2": "run.orders.placed/0/2",
    }


def test_intended_is_taken_from_the_timeline_then_the_header_then_the_timestamp(session: Any) -> None:
    found = records(
        session,
        kafka_row(REQUESTED, 0, '{"order_id": "o-1", "timeline": {"intended_us": 7, "placed_us": 8}}', intended_at="1"),
        kafka_row(PLACED, 1, '{"order_id": "o-2"}', intended_at="9", placed_at="11"),
        kafka_row(PLACED, 2, '{"order_id": "o-3"}', intended_at="nonsense"),
    )
    stamped_us = 1_767_607_200_000_000
    assert {row.event_id: (row.intended_us, row.placed_us) for row in found.collect()} == {
        "o-1": (7, 8),
        "o-2": (9, 11),
        "o-3": (stamped_us, stamped_us),
    }


def test_the_first_completion_counts_whatever_the_order_in_the_topic(session: Any) -> None:
    late, early = settled("o-1", 4, 900, replica="payment-1"), settled("o-1", 5, 400, replica="payment-0")
    event = event_rows(records(session, late, early), None).collect()[0]
    assert (event.done_us, event.received_us, event.replica) == (400, 395, "payment-0")
    assert (event.settled_records, event.settled_differ) == (2, False)
