"""Several policies or runs on a page: one table with intervals, and what cannot be told apart."""

from pathlib import Path

import msgspec
import pytest
from example_comparison import example_comparison

from bench.experiments.campaign import Missing
from bench.experiments.compare import Comparison, PolicyFigures, policies_compared
from bench.sections import Target
from report.comparison import RunComparison
from report.page.comparison_page import write_comparison
from report.page.rendering import COMPARED
from report.statistics import Against, Interval


def exactly(value: float) -> Interval:
    return Interval(value, value, value)


def figures(policy: str, *, in_sla: float, cost: float, against: Against | None = None) -> PolicyFigures:
    return PolicyFigures(
        scenario="w1", policy=policy, settings=("payment.partitions=9",), random=(), seeds=1, events=100.0,
        in_sla=exactly(in_sla), p50_s=None, p99_s=None, p999_s=exactly(0.5), max_s=None,
        replica_minutes=exactly(cost), packing_ratio=exactly(cost / 20), regret=exactly(cost / 20 - 1),
        scale_ups=exactly(1), scale_downs=exactly(1), reassignments=exactly(0), moved_partitions=exactly(3), lost=0,
        reference="b", in_sla_difference=against, p999_difference_s=None, replica_minutes_difference=against,
        on_front=True,
    )  # fmt: skip


def written(found: RunComparison, folder: Path) -> str:
    write_comparison(found, folder / "comparison.html")
    return (folder / "comparison.html").read_text(encoding="utf-8")


def promised(_: str) -> Target:
    return Target(latency_target_s=0.5, percentile=0.999)


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


def test_simulated_policies_become_a_comparison(tmp_path: Path) -> None:
    sure = Against(mean=-0.01, low=-0.01, high=-0.01, distinguishable=True)
    rows = (figures("a", in_sla=0.98, cost=22.0, against=sure), figures("b", in_sla=0.9995, cost=25.0))
    found = policies_compared(
        Comparison(rows=rows, missing=(Missing(run="w1 c", why="it broke"),)), target_of=promised, command="x"
    )
    assert found.verdict == (
        "w1, payment.partitions=9: 1 of 2 keep 99.9 % within 500 ms, b for the least (25.00 replica-minutes). "
        "a against b: −1.000 pp in time, −0.01 replica-minutes."
    )
    assert found.problems == ("w1 c: it broke",)
    assert found.scenarios[0].packing_replica_minutes == pytest.approx(20)
    assert "−1.000 pp" in written(found, tmp_path)
    assert [place.name for place in tmp_path.iterdir()] == ["comparison.html"]
