"""Rounds of the group by Spark, from rows of events."""

from collections.abc import Iterator
from typing import Any

import pytest
from spark_helpers import SPARK, spark

from contracts.journal import PlanWritten
from report.spark import seconds
from report.spark.events import EVENT
from report.spark.rebalances import changes, rounds
from report.spark.takeovers import stays
from report.spark.terms import Terms

pytestmark = [*SPARK, pytest.mark.long]
STARTED_US = 1_700_000_000_000_000
MS = 1_000


@pytest.fixture(scope="module", name="session")
def _session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    yield from spark(tmp_path_factory.mktemp("spark"))


def event(k: int, partition: int, sent_ms: int, received_ms: int, *, served: tuple[str, int]) -> dict[str, Any]:
    row: dict[str, Any] = dict.fromkeys(EVENT.names)
    times = {"intended_us": sent_ms, "placed_us": sent_ms, "received_us": received_ms, "done_us": received_ms + 5}
    row |= {name: STARTED_US + at_ms * MS for name, at_ms in times.items()}
    row |= {"event_id": f"o-{k}", "partition": partition, "offset": k, "replica": served[0], "epoch": served[1]}
    return row | {"dead_letters": 0}


def test_a_plan_that_moves_one_of_two_partitions_is_a_round(session: Any) -> None:
    stays_put = [event(k, 0, 100 * k, 100 * k + 1, served=("a", 1 if k < 10 else 2)) for k in range(20)]
    before = [event(100 + k, 1, 100 * k, 100 * k + 10, served=("a", 1)) for k in range(10)]
    after = [event(110 + k, 1, 1_000 + 100 * k, 1_060 + 100 * k, served=("b", 2)) for k in range(10)]
    events = session.createDataFrame(stays_put + before + after, EVENT)
    terms = Terms(STARTED_US, 500 * MS, 3)
    plans = [
        PlanWritten(
            at_us=STARTED_US + at_ms * MS, epoch=epoch, action="up", reason="", replicas=replicas,
            assignment=owners, moved=epoch - 1,
        )
        for at_ms, epoch, replicas, owners in (
            (-500, 1, ("a",), {0: "a", 1: "a"}), (1_010, 2, ("a", "b"), {0: "a", 1: "b"}),
        )
    ]  # fmt: skip

    found = changes(events, stays(seconds.served(seconds.cells(events, terms)), {}))

    (change,) = found
    assert (change.partition, change.old, change.new, change.epoch) == (1, "a", "b", 2)
    assert change.left_us == STARTED_US + 915 * MS
    assert change.came_us == STARTED_US + 1_060 * MS
    assert change.sent_us == STARTED_US + 1_000 * MS
    (one,) = rounds(found, plans, (), STARTED_US, 1 * MS)
    assert (one.kind, one.members, one.moved) == ("plan", 2, 1)
    assert (one.pause_s, one.plan_to_ready_s) == (0.05, 0.05), (
        "145 ms without an event; one waited for 50 since the plan"
    )
