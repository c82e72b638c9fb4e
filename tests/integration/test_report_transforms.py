"""The report's transforms on frames small enough to judge by eye."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import Row
from pyspark.sql import types as t
from spark_helpers import SPARK, spark

from contracts.topics import Topic
from report.spark import seconds
from report.spark.events import COLUMN_OF, event_rows, refused_records, typed_records
from report.spark.files import Events
from report.spark.integrity import integrity, totals
from report.spark.percentiles import PARTS_PER_MILLION, breakdowns, distribution, nearest_ranks
from report.spark.queues import owner_loads
from report.spark.takeovers import stays
from report.spark.terms import Terms

pytestmark = [*SPARK, pytest.mark.long]

KAFKA_ROW = (
    "topic string, partition int, offset long, key binary, value binary, timestamp timestamp, "
    "headers array<struct<key: string, value: binary>>"
)
SECOND = 1_000_000
PLACED, REQUESTED, SETTLED = Topic.ORDERS_PLACED, Topic.PAYMENTS_REQUESTED, Topic.PAYMENTS_SETTLED
NOTIFIED = Topic.NOTIFICATIONS_SENT
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


def test_a_refused_record_is_recognised_by_its_place(session: Any) -> None:
    letters = session.createDataFrame(
        [kafka_row("dead.letters", 0, '{"topic": "run.orders.placed", "partition": 0, "offset": 1, "stage": "order"}')],
        KAFKA_ROW,
    )
    bad, good = kafka_row(PLACED, 1, "not json"), kafka_row(PLACED, 2, '{"order_id": "o-2"}')
    events = event_rows(records(session, bad, good), refused_records(letters))
    assert {row.event_id: row.dead_letters for row in events.collect()} == {"run.orders.placed/0/1": 1, "o-2": 0}


EVENT = t.StructType(
    [t.StructField(name, t.StringType()) for name in ("event_id", "replica")]
    + [
        t.StructField(name, t.LongType())
        for name in (
            "intended_us", "placed_us", "accepted_us", "received_us", "done_us", "shipped_us", "notified_us",
            "offset", "dead_letters", "epoch", "customer_hash",
        )
    ]
    + [t.StructField("partition", t.IntegerType()), t.StructField("accepted", t.BooleanType())]
    + [t.StructField(f"{prefix}_records", t.LongType()) for prefix in COLUMN_OF.values()]
    + [t.StructField(f"{prefix}_differ", t.BooleanType()) for prefix in COLUMN_OF.values()]
)  # fmt: skip


def event(name: str, **values: Any) -> Row:
    """A well served, accepted order; `values` say what is different."""
    usual: dict[str, Any] = dict.fromkeys(EVENT.names)
    usual |= {f"{prefix}_records": 1 for prefix in COLUMN_OF.values()}
    usual |= {f"{prefix}_differ": False for prefix in COLUMN_OF.values()}
    usual |= {"event_id": name, "intended_us": 0, "placed_us": 1, "done_us": 5, "accepted": True, "dead_letters": 0}
    return Row(**usual | values)


def counts_of(frame: Any, now_us: int = 10**18) -> dict[str, Any]:
    shares = seconds.shares(seconds.cells(frame, TERMS))
    return totals(frame, pipeline=True, now_us=now_us) | {"events": shares.events, "lost": shares.lost}


def counted(session: Any, *events: Row) -> Any:
    frame = session.createDataFrame(list(events), EVENT)
    shares = seconds.shares(seconds.cells(frame, TERMS))
    return SimpleNamespace(**counts_of(frame), in_sla=shares.in_sla, refused=shares.refused)


def test_every_event_is_accounted_for_once(session: Any) -> None:
    nothing = {f"{prefix}_records": 0 for prefix in COLUMN_OF.values()}
    found = counted(
        session,
        event("in time", done_us=500_000),
        event("late", done_us=500_001),
        event("declined", accepted=False, shipped_records=0),
        event("lost", **nothing | {"placed_records": 1, "done_us": None, "accepted": None}),
        event("refused", **nothing | {"placed_records": 1, "done_us": None, "accepted": None, "dead_letters": 1}),
    )
    assert (found.events, found.in_sla, found.lost, found.refused) == (4, 2, 1, 1)
    assert (found.exactly_once, found.doubled) == (3, 0)


def test_effects_that_came_twice_or_not_at_all(session: Any) -> None:
    found = counted(
        session,
        event("settled twice, agreeing", settled_records=2),
        event("settled twice, disagreeing", settled_records=2, settled_differ=True),
        event("shipped twice", shipped_records=2),
        event("declined but shipped", accepted=False),
        event("never notified", notified_records=0),
    )
    assert (found.events, found.exactly_once, found.doubled) == (5, 1, 3)
    assert (found.settled_records, found.settled_duplicates, found.settled_differing) == (7, 2, 1)


def test_what_overtook_another_in_its_partition_is_a_violation_and_counted_by_customer_beside(session: Any) -> None:
    events = session.createDataFrame(
        [
            event("first", partition=0, offset=0, done_us=30, customer_hash=7),
            event("of another", partition=0, offset=1, done_us=20, customer_hash=8),
            event("of the same", partition=0, offset=2, done_us=25, customer_hash=7),
            event("in order", partition=0, offset=5, done_us=40, customer_hash=7),
            event("elsewhere", partition=1, offset=3, done_us=10),
            event("nowhere"),
        ],
        EVENT,
    )
    found = integrity(Events(events), counts_of(events), lost=counts_of(events)["lost"])
    assert (found.order_violations_partition, found.order_violations_key, found.offset_gaps) == (2, 1, 2)
    assert integrity(Events(events.drop("customer_hash")), counts_of(events), lost=0).order_violations_key is None


def test_a_customer_whose_events_went_to_several_partitions_is_seen_to_be_overtaken(session: Any) -> None:
    split = {"customer_hash": 7, "intended_us": 0}
    events = session.createDataFrame(
        [
            event("first", partition=0, offset=0, accepted_us=10, done_us=90, **split),
            event("overtakes it", partition=1, offset=0, accepted_us=20, done_us=50, **split),
            event("overtakes it, too", partition=2, offset=4, accepted_us=30, done_us=60, **split),
            event("comes late", partition=1, offset=1, accepted_us=40, done_us=95, **split),
            event("of another", partition=1, offset=2, accepted_us=41, done_us=96, customer_hash=8, intended_us=0),
            event("at the same time as it", partition=2, offset=5, accepted_us=41, done_us=97, **split),
            event("by a clock that is behind", partition=2, offset=6, accepted_us=39, done_us=99, **split),
        ],
        EVENT,
    )
    told = integrity(Events(events), counts_of(events), lost=0)
    assert (told.order_violations_partition, told.order_violations_key, told.suspect) == (0, 2, ())
    asked = integrity(Events(events), counts_of(events), lost=0, key_order=True)
    assert asked.suspect == ("2 events done before an earlier one of the same customer",)


def test_times_that_cannot_be_are_counted_and_said(session: Any) -> None:
    events = session.createDataFrame(
        [
            event("well", received_us=2),
            event("from the future", received_us=2, done_us=2_000),
            event("received before it was sent", placed_us=4, received_us=3),
        ],
        EVENT,
    )
    found = integrity(Events(events), counts_of(events, now_us=1_000), lost=0)
    assert (found.future, found.clock_skew) == (1, {"queueing": 1})
    assert found.suspect == (
        "1 event with a time after this report was made",
        "1 event for which queueing took less than no time",
    )


TERMS = Terms(started_us=0, target_us=500_000, shown_s=4)


def test_series_stand_at_the_second_of_intent_and_of_completion(session: Any) -> None:
    slow = event("slow", intended_us=SECOND - 1, done_us=2 * SECOND, partition=3)
    early = event("before the start", intended_us=-1, done_us=SECOND)
    events = session.createDataFrame([slow, early], EVENT)
    by_second = {row.second: row for row in seconds.by_second(events, TERMS).collect()}
    assert (by_second[0].arrivals, by_second[0].p50, by_second[0].max) == (1, SECOND + 1, SECOND + 1)
    assert set(by_second) == {0, -1}
    assert seconds.shares(seconds.cells(events, TERMS)).done == {2: 1, 1: 1}
    shown = distribution(events, 4)
    assert (shown.share, shown.latency_s) == ((0.5,), (10 ** (301 / 50) / 1e6,)), "⌈50·log10(1,000,001)⌉"


def test_ranks_are_those_of_all_values_in_order(session: Any) -> None:
    chance = Random(5)
    groups: dict[str | None, list[int]] = {
        "spread": [chance.randrange(-50, 10**7) for _ in range(997)],
        "equal": [777] * 40,
        "single": [3],
        None: [chance.randrange(1_000, 1_100) for _ in range(300)],
    }
    rows = [(name, value) for name, values in groups.items() for value in values]
    frame = session.createDataFrame([*rows, ("spread", None), ("never", None)], "name string, value_us long")
    found = {row["name"]: row for row in nearest_ranks(frame, "name").collect()}
    assert set(found) == set(groups)
    for name, values in groups.items():
        ordered, ranked = sorted(values), found[name]
        assert (ranked.events, ranked.max) == (len(values), ordered[-1])
        for quantile in ("p50", "p99", "p9999"):
            rank = -(-len(values) * PARTS_PER_MILLION[quantile] // 1_000_000)
            assert ranked[quantile] == ordered[rank - 1], (name, quantile)


def test_breakdowns_cover_every_event_that_was_done(session: Any) -> None:
    where = [(0, "payment-0", 1, 10), (0, "payment-10", 2, 600_000), (1, "payment-2", 2, 20), (None, None, None, 30)]
    rows = [
        event(str(k), partition=partition, replica=replica, epoch=epoch, done_us=done_us)
        for k, (partition, replica, epoch, done_us) in enumerate(where)
    ]
    events = session.createDataFrame([*rows, event("never", done_us=None)], EVENT)
    found = breakdowns(events, seconds.cells(events, TERMS))
    assert [(one.name, one.events, one.late) for one in found.partitions] == [
        ("0", 2, 1),
        ("1", 1, 0),
        ("unknown", 1, 0),
    ]
    assert [one.name for one in found.replicas] == ["payment-0", "payment-2", "payment-10", "unknown"]
    assert [(one.name, one.max_s) for one in found.epochs] == [("1", 1e-5), ("2", 0.6), ("unknown", 3e-5)]


def test_the_heat_map_shows_the_worst_of_each_cell_and_who_served_last(session: Any) -> None:
    events = session.createDataFrame(
        [
            event("a", partition=2, replica="payment-0", intended_us=0, done_us=10),
            event("b", partition=2, replica="payment-1", intended_us=5, done_us=700_005),
            event("c", partition=2, replica="payment-0", intended_us=2 * SECOND, done_us=2 * SECOND + 40),
            event("absurd", partition=2, replica="payment-0", intended_us=-SECOND, done_us=10**15),
        ],
        EVENT,
    )
    found = seconds.heat_map(seconds.owned(seconds.cells(events, TERMS)), TERMS)
    assert (found.cell_s, found.partitions) == (1.0, (2,))
    assert found.max_s == ((0.7, None, 0.00004, None),)
    assert found.owners == (("payment-1", None, "payment-0", None),)


def test_a_stay_begins_when_another_replica_serves_the_partition(session: Any) -> None:
    events = session.createDataFrame(
        [
            event("a", partition=0, replica="payment-0", epoch=1, received_us=1, done_us=5),
            event("b", partition=0, replica="payment-0", epoch=2, received_us=7, done_us=SECOND),
            event("c", partition=0, replica="payment-1", epoch=2, received_us=SECOND + 300, done_us=SECOND + 400),
        ],
        EVENT,
    )
    rows = stays(seconds.served(seconds.cells(events, TERMS)), {}).collect()
    found = {(row.replica, row.epoch): (row.old, row.left_us, row.came_us) for row in rows}
    assert found["payment-0", 1] == found["payment-0", 2] == (None, None, None)
    assert found["payment-1", 2] == ("payment-0", SECOND, SECOND + 300)


def test_a_load_counts_ten_seconds_and_tells_since_when_it_is_too_much(session: Any) -> None:
    table = [(0, second, 150, 0, "payment-0") for second in range(20)] + [(1, 19, 5, 0, "payment-1")]
    arrived = session.createDataFrame(table, "partition int, second long, events long, max_us long, owner string")
    found = {(row.replica, row.second): row for row in owner_loads(arrived, 10_000).collect()}
    assert found["payment-0", 5].load == 900
    assert found["payment-0", 5].over_from is None, "900 services of 10 ms fit into ten seconds"
    assert (found["payment-0", 19].load, found["payment-0", 19].over_from) == (1500, 6)
    assert found["payment-1", 19].over_from is None
