"""result.json is whole or not there, and reads back as what was written; numbers are said one way."""

from pathlib import Path

import msgspec
import pytest
from example_report import example
from rich.console import Console
from small_report import small_result

from report.page.answers import show
from report.rebalance_times import RebalanceRound, Rebalances
from report.result import RESULT_FILE, Result


def test_what_is_saved_is_what_is_read(tmp_path: Path) -> None:
    example().save(tmp_path)
    assert Result.load(tmp_path) == example()
    assert [place.name for place in tmp_path.iterdir()] == [RESULT_FILE]


def test_a_result_of_an_earlier_version_is_read() -> None:
    older = msgspec.to_builtins(small_result())
    for name in ("rebalances", "world", "otherwise"):
        del older[name]
    assert older["tail"]["spells"], "the name that readers of result.json rely on"
    read = msgspec.convert(older, Result)
    assert (read.rebalances, read.otherwise, read.world) == (None, None, "live")


def test_the_terminal_shows_verdict_figures_and_stages() -> None:
    console = Console(width=110, record=True, file=None, force_terminal=False, quiet=False)
    with console.capture() as captured:
        show(example(), console)
    text = captured.get()
    assert "Promise kept" in text
    assert "why late  5 replica dead, 2 overloaded, 1 handover (of 8 late events)" in text
    assert "accepted → received by Payment" in text
    assert all(len(line) <= 110 for line in text.splitlines())


def one(at_s: float, pause_s: float | None, *, kind: str = "plan", moved: int = 1) -> RebalanceRound:
    ready_s = None if pause_s is None or kind == "membership" else pause_s + 0.02
    return RebalanceRound(at_s=at_s, kind=kind, members=3, moved=moved, pause_s=pause_s, plan_to_ready_s=ready_s)


def many() -> Rebalances:
    planned = [one(float(k), k / 1000) for k in range(1, 101)]
    return Rebalances.of("incremental", [one(200.0, 0.6, kind="membership", moved=2), one(150.0, None), *planned])


def test_rebalances_are_told_by_kind_members_and_moved_partitions() -> None:
    planned, unasked = many().lengths
    assert (planned.kind, planned.moved, planned.rounds, planned.measured) == ("plan", 1, 101, 100)
    pauses = (planned.pause_p50_s, planned.pause_p90_s, planned.pause_p99_s, planned.pause_max_s)
    assert pauses == (0.05, 0.09, 0.099, 0.1)
    assert planned.ready_p99_s == pytest.approx(0.119)
    assert (unasked.kind, unasked.pause_max_s, unasked.ready_max_s) == ("membership", 0.6, None)
