"""The picture of the comparison."""

from pathlib import Path

from bench.handover.outcomes import HandoverFigures
from bench.handover.plot import draw
from bench.results import HandoverRow, Origin


def row(runtime: str, heartbeat_s: float, moved_p99_s: float | None) -> HandoverRow:
    return HandoverRow(
        runtime=runtime, heartbeat_s=heartbeat_s, replicas=3, partitions=6, rate=150.0, seed=1, quick=False,
        lateness_p99_s=0.001, lateness_max_s=0.002, valid=True, problem="", interrupted=False, wall_s=60.0,
        steps="mixed",
        origin=Origin(command="tailpack bench handover", commit="c0ffee", machine="here", measured_on="2026-01-01"),
        figures=HandoverFigures(
            moved_p99_s=moved_p99_s, moved_p999_s=moved_p99_s, moved_max_s=moved_p99_s, unmoved_p99_s=0.01,
            unmoved_max_s=0.02, unmoved_extra_s=0.001, quiet_p99_s=0.009, stall_max_s=0.02, plan_to_first_event_s=0.05,
            lost=0, duplicates=0, order_violations=0, offset_regressions=0, handovers=200, unfinished=0, superseded=0,
            events=9000, kinds=(), worst=None,
        ),
    )  # fmt: skip


def test_every_row_is_named_and_equal_rows_make_equal_pictures(tmp_path: Path) -> None:
    rows = [row("eager", 3.0, 0.03), row("share", 3.0, None), row("incremental", 0.5, 0.01)]

    draw(rows, tmp_path / "one.svg")
    draw(rows[::-1], tmp_path / "two.svg")

    text = (tmp_path / "one.svg").read_text()
    names = [text.index(name) for name in ("incremental, 0.5 s", "eager, 3 s", "share, 3 s")]
    assert names == sorted(names), "ours first, then the others"
    assert text == (tmp_path / "two.svg").read_text()
