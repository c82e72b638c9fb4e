"""Several policies or runs on a page: one table with intervals, and what cannot be told apart."""

from pathlib import Path

import msgspec
from example_comparison import example_comparison

from report.comparison import RunComparison
from report.page.comparison_page import write_comparison
from report.page.rendering import COMPARED


def written(found: RunComparison, folder: Path) -> str:
    write_comparison(found, folder / "comparison.html")
    return (folder / "comparison.html").read_text(encoding="utf-8")


def test_the_page_needs_nothing_beside_it_and_explains_its_words(tmp_path: Path) -> None:
    text = written(example_comparison(), tmp_path)
    assert written(example_comparison(), tmp_path) == text
    assert "src=" not in text.split("<script>")[0]
    for word in COMPARED:
        assert f"<dt>{word}</dt>" in text


def test_every_policy_has_its_row_and_who_cannot_be_told_apart_is_said_so(tmp_path: Path) -> None:
    found = example_comparison()
    text = written(found, tmp_path)
    for one in found.scenarios[0].contestants:
        assert f'<th scope="row">{one.label}</th>' in text
    assert "99.932 % (99.922 % to 99.941 %)" in text
    assert "not distinguishable (−0.004 pp to +0.005 pp)" in text
    assert "−0.061 pp (−0.070 pp to −0.053 pp)" in text


def test_a_name_cannot_break_out(tmp_path: Path) -> None:
    (scenario,) = example_comparison().scenarios
    hostile = msgspec.structs.replace(scenario.contestants[1], label="<script>alert(1)</script>")
    changed = msgspec.structs.replace(scenario, contestants=(hostile,))
    text = written(msgspec.structs.replace(example_comparison(), scenarios=(changed,)), tmp_path)
    assert "<script>alert" not in text
