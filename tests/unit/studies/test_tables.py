"""Tables of a Markdown file are made from the figures, between their markers and nowhere else."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from bench import markdown
from bench.markdown import renew, renew_file
from bench.results import Kept, LiveRow, Origin, ProcessRow, SimulatedSide, SparkRow
from studies import tables
from studies.tables import EVERY_TABLE

DOCS = Path(__file__).parents[3] / "docs"
ORIGIN = Origin(command="tailpack bench all", commit="0123abc", machine="2 cores", measured_on="2026-01-05")
TEXT = """# Title

Before.

<!-- table: spark -->
| typed by hand |
<!-- end -->

Between; a table of its own:

| a |
|---|

<!-- table: startup -->
<!-- end -->
"""


def live(policy: str, *, seed: int = 1, valid: bool = True, replica_minutes: float = 23.456) -> LiveRow:
    points = {1: 0.1, 2: -0.3}.get(seed, 0.0)
    return LiveRow(
        scenario="w1", policy=policy, seed=seed, events=109_053, in_sla=0.99951, p50_s=0.0301, p99_s=0.2104,
        p999_s=0.4812, max_s=1.2345, replica_minutes=replica_minutes, scale_ups=6, scale_downs=5, reassignments=4,
        lost=0, lateness_p99_s=0.002, valid=valid,
        simulated=SimulatedSide(
            in_sla=0.99951 + points / 100, p999_s=0.48, replica_minutes=23.0, in_sla_points=points,
            replica_minutes_share=23.0 / replica_minutes - 1,
        ),
    )  # fmt: skip


def process(name: str, topology: str, rate: int, cores: float, peak_mib: float) -> ProcessRow:
    return ProcessRow(rate=rate, topology=topology, name=name, cores=cores, peak_mib=peak_mib)


MEASURED: dict[str, list[Any]] = {
    "live": [
        live("own", valid=False), live("algorithm-2"), live("algorithm-2", seed=2, replica_minutes=24.0),
        live("algorithm-2", seed=3, replica_minutes=25.0),
    ],
    "processes": [
        process("order", "pipeline", 150, 0.2, 60.0), process("payment-0", "pipeline", 150, 0.1, 30.0),
        process("payment-0", "payment-only", 150, 0.125, 31.0),
    ],
    "spark": [
        SparkRow(
            events=1_000_000, wall_s=14.04, peak_rss_gib=1.234, events_per_s=71_225.1, in_sla=0.9911,
            late_by_cause={"burst": 8_900},
        ),
        SparkRow(
            events=10_000_000, wall_s=25.0, peak_rss_gib=2.5, events_per_s=400_000.0, in_sla=0.99,
            late_by_cause={"burst": 100_000},
        ),
    ],
}  # fmt: skip


@pytest.fixture
def _measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(markdown, "load", lambda name, _: [Kept(row, ORIGIN) for row in MEASURED.get(name, [])])


def cells(table: str) -> list[list[str]]:
    """Return header and rows."""
    lines = [line for line in table.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.stem)
def test_a_page_shows_the_committed_figures(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert renew(text, EVERY_TABLE) == text, f"run `tailpack bench tables docs/{page.name}`"


def test_every_table_stands_on_a_page() -> None:
    pages = "".join(page.read_text(encoding="utf-8") for page in DOCS.glob("*.md"))
    assert [name for name in EVERY_TABLE if f"<!-- table: {name} -->" not in pages] == []


@pytest.mark.usefixtures("_measured")
def test_only_what_stands_between_the_markers_is_made_anew() -> None:
    after = renew(TEXT, EVERY_TABLE)
    assert "typed by hand" not in after
    assert "| 1,000,000 | 14.0 | 71,225 | 1.23 | 0.89 |" in after
    kept = [line for line in TEXT.splitlines() if line and "typed" not in line]
    found = iter(after.splitlines())
    assert all(line in found for line in kept), "all else is there, in its order"


@pytest.mark.usefixtures("_measured")
def test_a_file_is_written_only_when_something_changed(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text(TEXT, encoding="utf-8")
    assert renew_file(path, EVERY_TABLE)
    written_ns = path.stat().st_mtime_ns
    assert not renew_file(path, EVERY_TABLE)
    assert path.stat().st_mtime_ns == written_ns


@pytest.mark.usefixtures("_measured")
def test_live_runs_stand_beside_the_papers_rows() -> None:
    _, ours, own = cells(tables.live())
    same, spread = "99.951 % (99.951 % … 99.951 %)", "24.15 (23.46 … 25.00)"
    times = "30 / 210 / 481 / 1,234"
    assert ours == ["w1, algorithm-2 (3)", same, times, spread, "6/5/4", "97.4 %, 30.21, 6/6"]
    assert own[0] == "w1, own (1) (1 invalid)", "a run that is no measurement says so"
    assert own[1] == "99.951 %", "one run has no spread"
    assert own[-1] == "–", "the paper has no such row"


@pytest.mark.usefixtures("_measured")
def test_a_run_whose_load_was_shared_stands_in_a_table_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    shared = msgspec.structs.replace(live("tail-aware", seed=2), load_workers=2)
    monkeypatch.setitem(MEASURED, "live", [live("tail-aware"), shared])
    (row,) = cells(EVERY_TABLE["live-shared"]())[1:]
    assert row == ["w1, tail-aware, 2", "2", "2.0", "109,053", "99.951 %", "23.46", "-0.300 points, -1.94%", "–"]
    assert [one[0] for one in cells(tables.live())[1:]] == ["w1, tail-aware (1)"]


def test_how_long_a_command_took_is_said_where_it_was_measured() -> None:
    timed = Origin(command="tailpack grouping compare", commit="c", machine="m", measured_on="2026-01-05", wall_s=432)
    assert markdown.sources([timed]).strip() == "`tailpack grouping compare`, commit c, m, 2026-01-05, in 432 s"
    assert markdown.sources([ORIGIN]).strip().endswith("2026-01-05")
