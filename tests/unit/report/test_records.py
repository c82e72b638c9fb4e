"""Kafka's records become event rows: which event, its times, its first completion, what was refused."""

import json
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

from contracts.topics import Topic
from report.records import JoinedEvents, Record
from report.stored import COLUMN_OF

PLACED, REQUESTED, SETTLED = Topic.ORDERS_PLACED, Topic.PAYMENTS_REQUESTED, Topic.PAYMENTS_SETTLED
STAMPED_US = 1_767_607_200_000_000


@pytest.fixture
def rows(tmp_path: Path) -> Any:
    """A function that returns event id → row of the joined records."""

    def joined(*records: Record, refused: dict[str, int] | None = None) -> dict[str, dict[str, Any]]:
        events = JoinedEvents({f"run.{topic}": topic for topic in COLUMN_OF}, refused or {})
        for record in records:
            events.add(record)
        assert events.write(tmp_path / "part.parquet") == set()
        return {row["event_id"]: row for row in parquet.read_table(tmp_path / "part.parquet").to_pylist()}

    return joined


def record(topic: str, offset: int, value: str, *, key: str | None = None, **headers: str) -> Record:
    times = (headers[name].encode() if name in headers else None for name in ("intended_at", "placed_at"))
    return Record(f"run.{topic}", 0, offset, key.encode() if key else None, value.encode(), STAMPED_US, *times)


def settled(order: str, offset: int, done_us: int, *, replica: str = "payment-0", **content: Any) -> Record:
    timeline = {"intended_us": 0, "placed_us": 10, "received_us": done_us - 5, "done_us": done_us}
    timeline |= {"partition": 0, "offset": offset, "replica": replica}
    value = {"order_id": order, "payment_id": "p", "accepted": True, "timeline": timeline}
    return record(SETTLED, offset, json.dumps(value | content))


def test_a_record_is_known_by_its_order_then_its_key_then_its_place(rows: Any) -> None:
    found = rows(
        record(PLACED, 0, '{"order_id": "o-1"}', key="k-1"),
        record(PLACED, 1, "not json", key="k-2"),
        record(PLACED, 2, "[1]"),
        refused={"run.orders.placed/0/2": 3},
    )
    assert {name: row["dead_letters"] for name, row in found.items()} == {
        "o-1": 0, "k-2": 0, "run.orders.placed/0/2": 3
    }  # fmt: skip


def test_intended_is_taken_from_the_timeline_then_the_header_then_the_timestamp(rows: Any) -> None:
    found = rows(
        record(REQUESTED, 0, '{"order_id": "o-1", "timeline": {"intended_us": 7, "placed_us": 8}}', intended_at="1"),
        record(PLACED, 1, '{"order_id": "o-2"}', intended_at="9", placed_at="11"),
        record(PLACED, 2, '{"order_id": "o-3", "timeline": {"intended_us": "soon"}}', intended_at="nonsense"),
    )
    assert {name: (row["intended_us"], row["placed_us"]) for name, row in found.items()} == {
        "o-1": (7, 8),
        "o-2": (9, 11),
        "o-3": (STAMPED_US, STAMPED_US),
    }
    assert (found["o-1"]["partition"], found["o-1"]["offset"], found["o-1"]["done_us"]) == (0, 0, None)


def test_the_first_completion_counts_whatever_the_order_in_the_topic(rows: Any) -> None:
    late, early = settled("o-1", 4, 900, replica="payment-1"), settled("o-1", 5, 400, replica="payment-0")
    event = rows(late, early)["o-1"]
    assert (event["done_us"], event["received_us"], event["replica"]) == (400, 395, "payment-0")
    assert (event["settled_records"], event["settled_differ"]) == (2, False)
    assert rows(late, settled("o-1", 5, 400, payment_id="other"))["o-1"]["settled_differ"]
