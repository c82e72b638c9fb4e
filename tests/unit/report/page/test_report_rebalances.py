"""Rounds of the group in a result: their distribution, their tables, their place on the page."""

import msgspec
import pytest
from small_report import small_result

import report.result
from report.page.page import html
from report.page.sheets import markdown_report
from report.result import RebalanceRound, Rebalances, Result


def one(at_s: float, pause_s: float | None, *, kind: str = "plan", moved: int = 1) -> RebalanceRound:
    ready_s = None if pause_s is None or kind == "membership" else pause_s + 0.02
    return RebalanceRound(at_s=at_s, kind=kind, members=3, moved=moved, pause_s=pause_s, plan_to_ready_s=ready_s)


def many() -> Rebalances:
    planned = [one(float(k), k / 1000) for k in range(1, 101)]
    return Rebalances.of("incremental", [one(200.0, 0.6, kind="membership", moved=2), one(150.0, None), *planned])


def test_lengths_are_told_by_kind_members_and_moved_partitions() -> None:
    planned, unasked = many().lengths
    assert (planned.kind, planned.moved, planned.rounds, planned.measured) == ("plan", 1, 101, 100)
    assert (planned.pause_p50_s, planned.pause_p90_s, planned.pause_p99_s, planned.pause_max_s) == (
        0.05, 0.09, 0.099, 0.1,
    )  # fmt: skip
    assert planned.ready_p99_s == pytest.approx(0.119)
    assert (unasked.kind, unasked.pause_max_s, unasked.ready_max_s) == ("membership", 0.6, None)


def test_the_oldest_rounds_are_left_out_of_the_list_and_not_of_the_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report.result, "MOST_ROUNDS", 10)
    found = many()
    assert (len(found.rounds), found.rounds_left_out, found.rounds[-1].at_s) == (10, 92, 200.0)
    assert found.lengths[0].rounds == 101


def test_they_stand_on_the_page_and_in_markdown() -> None:
    result = small_result(rebalances=many())
    page = html(result)
    assert 'id="rebalances"' in page
    assert "#rebalances" in page
    assert "membership" in page
    assert "incremental delivery" in page
    assert "## How long rebalances took" in markdown_report(result)


def test_where_nothing_was_measured_there_is_no_drawing_and_without_rounds_no_section() -> None:
    assert "Pause of each round" not in html(small_result(rebalances=Rebalances.of("eager", [one(1.0, None)])))
    for known in (None, Rebalances.of("eager", [])):
        assert 'id="rebalances"' not in html(small_result(rebalances=known))


def test_a_result_of_an_earlier_version_is_read() -> None:
    older = msgspec.to_builtins(small_result())
    del older["rebalances"]
    del older["cost"]["bound_gap_replica_minutes"]
    read = msgspec.convert(older, Result)
    assert read.rebalances is None
    assert read.cost is not None
    assert read.cost.bound_gap_replica_minutes is None
