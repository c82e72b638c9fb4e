"""The committed comparison: kept, read again, and shown as tables and a picture."""

import re
from pathlib import Path

import pytest
from packing_scores import latency_of, score, stream_delays, stream_scores, study_of

from bench.figures import Origin
from report.statistics import Interval
from studies.packing import tables
from studies.packing.claims import claims
from studies.packing.kept import KeptComparison, keep, kept
from studies.packing.plot import draw
from studies.packing.result import Comparison, Study
from studies.packing.words import median, plus_minus
from studies.tables import renew

ORIGIN = Origin(command="tailpack packing compare", commit="0123abc", machine="2 cores", measured_on="2026-01-05")


def study(partitions: int, delta: int) -> Study:
    streams = [
        stream_scores(mwf=score(mwf, 0.12), nfd=score(20.0, 0.24), keep_in_place=score(2.0, 0.11)) for mwf in (9.0, 9.5)
    ]
    return study_of(*streams, partitions=partitions, delta=delta)


@pytest.fixture
def comparison() -> Comparison:
    studies = tuple(study(partitions, delta) for partitions in (200, 32) for delta in (5, 25))
    latency = latency_of(stream_delays())
    return Comparison(
        seed=1,
        start=None,
        quick=False,
        studies=studies,
        latency=latency,
        claims=claims(studies, latency),
        source="the paper",
        wall_s=12.5,
    )


@pytest.fixture
def committed(comparison: Comparison, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> KeptComparison:
    keep(comparison, ORIGIN, tmp_path)
    found = kept(tmp_path)
    monkeypatch.setattr(tables, "kept", lambda: found)
    return found


def test_what_is_kept_comes_back_with_its_origin(comparison: Comparison, committed: KeptComparison) -> None:
    assert committed.origin == ORIGIN
    assert committed.studies == comparison.studies
    assert committed.latency == comparison.latency
    assert committed.claims == comparison.claims


@pytest.mark.usefixtures("committed")
def test_the_points_stand_side_by_side_for_both_deltas() -> None:
    lines = tables.points().splitlines()
    assert lines[0].count("δ = 5") == lines[0].count("δ = 25") == 1
    (mwf,) = (line for line in lines if line.startswith("| mwf |"))
    assert mwf.count("9.25 ±") == 2
    assert "○" in mwf, "keep_in_place dominates it; of the twelve nobody does"
    (ours,) = (line for line in lines if line.startswith("| keep_in_place |"))
    assert "●" in ours
    assert "`tailpack packing compare`, commit 0123abc" in lines[-1]


@pytest.mark.usefixtures("committed")
def test_the_goals_have_a_line_for_each_study() -> None:
    lines = [line for line in tables.goals().splitlines() if "keep_in_place" in line]
    assert [line.split("|")[1].strip() for line in lines] == ["200, 5", "200, 25", "32, 5", "32, 25"]
    assert all("0.22" in line for line in lines), "2 of 9.25"
    assert all(line.endswith("| none |") for line in lines)


def test_every_claim_and_every_packer_has_its_line(committed: KeptComparison) -> None:
    assert tables.claims().count("reproduced |") + tables.claims().count("differs |") == len(committed.claims)
    assert "| kd_32 | 15.0 | none delayed |" in tables.latency()


@pytest.mark.parametrize("name", tables.PACKING_TABLES)
@pytest.mark.usefixtures("committed")
def test_tables_are_well_formed(name: str) -> None:
    lines = [line for line in tables.PACKING_TABLES[name]().splitlines() if line.startswith("|")]
    assert len({line.count("|") for line in lines}) == 1
    assert re.fullmatch(r"[a-z-]+", name), "a marker can name it"


def test_the_picture_names_everybody_and_is_the_same_each_time(comparison: Comparison, tmp_path: Path) -> None:
    for name in ("one.svg", "two.svg"):
        draw(comparison.studies[:2], tmp_path / name)
    drawn = (tmp_path / "one.svg").read_text(encoding="utf-8")
    assert drawn == (tmp_path / "two.svg").read_text(encoding="utf-8")
    for words in ("mwf", "nfd", "mbfp", "keep in place", "200 partitions, δ = 25"):
        assert words in drawn


def test_figures_have_three_digits_and_no_interval_where_all_streams_agree() -> None:
    assert plus_minus(Interval(9.34, 9.24, 9.44)) == "9.34 ±0.10"
    assert plus_minus(Interval(0.1153, 0.1103, 0.1203), 100) == "11.5 ±0.5"
    assert plus_minus(Interval(1800.0, 1700.0, 1900.0)) == "1,800 ±100"
    assert plus_minus(Interval(32.0, 32.0, 32.0)) == "32.0"
    assert median(None) == "none delayed"


def test_the_page_shows_the_committed_figures() -> None:
    page = Path(__file__).parents[4] / "docs" / "packing.md"
    text = page.read_text(encoding="utf-8")
    assert all(f"<!-- table: {name} -->" in text for name in tables.PACKING_TABLES)
    assert renew(text) == text, "run `tailpack bench tables docs/packing.md`"
