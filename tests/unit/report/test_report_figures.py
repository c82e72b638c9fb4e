"""The figures of a report, for a few rows with known results."""

from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from late_story import STARTED_US, quiet, rows, stored
from published_runs import made_up_run, run_info

from contracts.connection import Connection
from report import ReportError, seconds
from report.figures import measure
from report.integrity import integrity, totals
from report.percentiles import ValueCounts, distribution, measure_spans
from report.seconds import PARTS_PER_MILLION, ranks_by_key
from report.stored import COLUMN_OF
from report.terms import Terms

SECOND = 1_000_000


def event(**values: Any) -> dict[str, Any]:
    """Return an accepted order that was served in time, changed by `values`."""
    typical: dict[str, Any] = {f"{prefix}_records": 1 for prefix in COLUMN_OF.values()}
    typical |= {f"{prefix}_differ": False for prefix in COLUMN_OF.values()}
    typical |= {"intended_us": 0, "placed_us": 1, "done_us": 5, "accepted": True, "dead_letters": 0}
    return typical | values


def counts_of(frame: Any, now_us: int = 10**18) -> dict[str, Any]:
    event_counts = seconds.event_counts(seconds.cells(frame, TERMS))
    return totals(frame, pipeline=True, now_us=now_us) | {"events": event_counts.events, "lost": event_counts.lost}


def counted(*events: dict[str, Any]) -> Any:
    frame = stored(events)
    event_counts = seconds.event_counts(seconds.cells(frame, TERMS))
    return SimpleNamespace(**counts_of(frame), in_sla=event_counts.in_sla, refused=event_counts.refused)


def test_each_event_is_counted_once() -> None:
    nothing = {f"{prefix}_records": 0 for prefix in COLUMN_OF.values()}
    found = counted(
        event(done_us=500_000),
        event(done_us=500_001),
        event(accepted=False, shipped_records=0),
        event(**nothing | {"placed_records": 1, "done_us": None, "accepted": None}),
        event(**nothing | {"placed_records": 1, "done_us": None, "accepted": None, "dead_letters": 1}),
    )
    assert (found.events, found.in_sla, found.lost, found.refused) == (4, 2, 1, 1)
    assert (found.exactly_once, found.doubled) == (3, 0)


def test_doubled_and_missing_effects_are_counted() -> None:
    found = counted(
        event(settled_records=2),
        event(settled_records=2, settled_differ=True),
        event(shipped_records=2),
        event(accepted=False),
        event(notified_records=0),
    )
    assert (found.events, found.exactly_once, found.doubled) == (5, 1, 3)
    assert (found.settled_records, found.settled_duplicates, found.settled_differing) == (7, 2, 1)


def test_reordered_events_are_counted_by_partition_and_by_customer() -> None:
    events = stored(
        [
            event(partition=0, offset=0, done_us=30, customer_hash=7),
            event(partition=0, offset=1, done_us=20, customer_hash=8),
            event(partition=0, offset=2, done_us=25, customer_hash=7),
            event(partition=0, offset=5, done_us=40, customer_hash=7),
            event(partition=1, offset=3, done_us=10),
            event(),
        ]
    )
    found = integrity(events, counts_of(events), lost=counts_of(events)["lost"])
    assert (found.order_violations_partition, found.order_violations_key, found.offset_gaps) == (2, 1, 2)
    assert integrity(stored([event()]), counts_of(events), lost=0).order_violations_key is None


def test_reordered_events_of_a_customer_are_counted_across_partitions() -> None:
    split = {"customer_hash": 7, "intended_us": 0}
    events = stored(
        [
            event(partition=0, offset=0, accepted_us=10, done_us=90, **split),
            event(partition=1, offset=0, accepted_us=20, done_us=50, **split),
            event(partition=2, offset=4, accepted_us=30, done_us=60, **split),
            event(partition=1, offset=1, accepted_us=40, done_us=95, **split),
            event(partition=1, offset=2, accepted_us=41, done_us=96, customer_hash=8, intended_us=0),
            event(partition=2, offset=5, accepted_us=41, done_us=97, **split),
            event(partition=2, offset=6, accepted_us=39, done_us=99, **split),
        ]
    )
    unkeyed = integrity(events, counts_of(events), lost=0)
    assert (unkeyed.order_violations_partition, unkeyed.order_violations_key, unkeyed.suspect) == (0, 2, ())
    keyed = integrity(events, counts_of(events), lost=0, key_order=True)
    assert keyed.suspect == ("2 events completed before an earlier event of the same customer",)


def test_impossible_times_are_counted_and_described() -> None:
    events = stored([event(received_us=2), event(received_us=2, done_us=2_000), event(placed_us=4, received_us=3)])
    found = integrity(events, counts_of(events, now_us=1_000), lost=0)
    assert (found.future, found.clock_skew) == (1, {"queueing": 1})
    assert found.suspect == (
        "1 event with a timestamp after the time of this report",
        "1 event with a negative duration of queueing",
    )


TERMS = Terms(started_us=0, target_us=500_000, shown_s=4)


def test_series_use_the_intended_second_and_the_second_of_completion() -> None:
    slow = event(intended_us=SECOND - 1, done_us=2 * SECOND, partition=3)
    early = event(intended_us=-1, done_us=SECOND)
    events = stored([slow, early])
    found = seconds.by_second(events, TERMS)
    assert found["second"].tolist() == [-1, 0]
    assert [int(found[name][1]) for name in ("arrivals", "p50", "max")] == [1, SECOND + 1, SECOND + 1]
    assert seconds.event_counts(seconds.cells(events, TERMS)).done == {2: 1, 1: 1}
    shown = distribution(measure_spans(events)["sla"], 4)
    assert (shown.share, shown.latency_s) == ((0.5,), (10 ** (301 / 50) / 1e6,)), "⌈50·log10(1,000,001)⌉"


def test_percentiles_are_those_of_the_sorted_values() -> None:
    chance = Random(5)
    groups = [[chance.randrange(-50, 10**7) for _ in range(997)], [777] * 40, [3]]
    keys = np.repeat([4, 5, 9], [len(values) for values in groups])
    found, ranks = ranks_by_key(keys[::-1], np.concatenate(groups)[::-1], tuple(PARTS_PER_MILLION))
    assert found.tolist() == [4, 5, 9]
    for place, values in enumerate(groups):
        each = ValueCounts(np.array(values), np.ones(len(values), np.int64))
        for name, ppm in PARTS_PER_MILLION.items():
            expected = sorted(values)[-(-len(values) * ppm // 1_000_000) - 1]
            assert ranks[name][place] == expected, (place, name)
            assert each.rank(name) == expected / 1e6, (place, name)


def test_the_heat_map_shows_worst_latency_and_last_owner_of_each_cell() -> None:
    events = stored(
        [
            event(partition=2, replica="payment-0", intended_us=0, done_us=10),
            event(partition=2, replica="payment-1", intended_us=5, done_us=700_005),
            event(partition=2, replica="payment-0", intended_us=2 * SECOND, done_us=2 * SECOND + 40),
            event(partition=2, replica="payment-0", intended_us=-SECOND, done_us=10**15),
        ]
    )
    found = seconds.heat_map(seconds.owned_arrivals(seconds.cells(events, TERMS)), TERMS)
    assert (found.cell_s, found.partitions) == (1.0, (2,))
    assert found.max_s == ((0.7, None, 0.00004, None),)
    assert found.owners == (("payment-1", None, "payment-0", None),)


NEVER = {"done_us": None, "received_us": None, "replica": None, "epoch": None, "settled_records": 0}


@pytest.mark.parametrize(
    ("changes", "events", "lost", "late"),
    [
        ([{}] * 20, 20, 0, 0),
        ([NEVER] * 20, 20, 20, 20),
        ([NEVER | {"dead_letters": 1}] * 20, 0, 0, 0),
        ([{"partition": None, "offset": None}] * 20, 20, 0, 0),
        ([{"replica": None, "epoch": None}] * 20, 20, 0, 0),
        ([{"done_us": 9 * 10**18}, {"intended_us": 0}, {"intended_us": -5}], 3, 0, 3),
    ],
    ids=["usual", "never done", "refused", "nowhere", "by nobody", "absurd times"],
)
def test_each_run_with_events_has_a_report(changes: list[dict[str, Any]], events: int, lost: int, late: int) -> None:
    run = run_info(Connection(bootstrap_servers=""), made_up_run(20, 10.0, STARTED_US, 1), pipeline=False)
    changed_rows = [row | change for row, change in zip(rows(quiet(0, 2.0)), changes, strict=False)]
    found = measure(run, stored(changed_rows), [], now_us=10**18)
    assert found.tail is not None
    assert (found.events, found.lost, found.tail.late) == (events, lost, late)
    assert len(found.series.done) <= 2 + 600, "no time, however wrong, extends the series further"


def test_a_run_without_events_has_no_report() -> None:
    run = run_info(Connection(bootstrap_servers=""), made_up_run(20, 10.0, STARTED_US, 1), pipeline=False)
    with pytest.raises(ReportError, match="no events"):
        measure(run, stored([]), [], now_us=10**18)
