"""Several policies on a page: the front, the intervals, and what cannot be told apart."""

import re
from dataclasses import replace

import pytest
from example_comparison import example_comparison

from bench.comparison.compare import Comparison, Missing
from bench.comparison.policy_comparison import policies_view
from bench.comparison.rows import PolicyFigures
from bench.sections import Target
from report.page.comparison_page import comparison_html, write_comparison
from report.page.comparison_view import Compared, ComparisonView, Group
from report.page.drawing.pareto import pareto
from report.page.drawing.svg import NARROW_PX, WIDE_PX
from report.page.terms import compared_terms
from report.statistics import Against, Interval


def exactly(value: float) -> Interval:
    return Interval(value, value, value)


def figures(policy: str, *, in_sla: float, cost: float, against: Against | None = None) -> PolicyFigures:
    return PolicyFigures(
        scenario="w1", policy=policy, settings=("payment.partitions=9",), random=(), seeds=1, events=100.0,
        in_sla=exactly(in_sla), p50_s=None, p99_s=None, p999_s=exactly(0.5), max_s=None,
        replica_minutes=exactly(cost), bound_ratio=exactly(cost / 20), regret=exactly(cost / 20 - 1),
        scale_ups=exactly(1), scale_downs=exactly(1), reassignments=exactly(0), moved_partitions=exactly(3), lost=0,
        reference="b", in_sla_difference=against, p999_difference_s=None, replica_minutes_difference=against,
        on_front=True,
    )  # fmt: skip


def promised(scenario: str) -> Target:
    assert scenario
    return Target(latency_target_s=0.5, percentile=0.999)


def test_the_page_needs_nothing_beside_it_and_no_script() -> None:
    text = comparison_html(example_comparison())
    assert "<script" not in text
    assert set(re.findall(r"https?://[^\s\"'<>)]+", text)) == {"http://www.w3.org/2000/svg"}
    assert comparison_html(example_comparison()) == text


def test_every_policy_is_named_in_the_drawing_and_stands_in_the_tables() -> None:
    group = example_comparison().groups[0]
    text = comparison_html(example_comparison())
    for one in group.compared:
        assert f"{one.label}</th>" in text
        if one.label != group.reference:
            assert f">{one.label}</text>" in text
    drawn = pareto(group, WIDE_PX)
    assert drawn.count("<circle") == len(group.compared)
    assert drawn.count('class="point front"') == sum(one.on_front for one in group.compared)


def test_who_cannot_be_told_apart_is_said_so() -> None:
    view = example_comparison()
    gaps = [one.in_sla_gap for one in view.groups[0].compared if one.in_sla_gap]
    assert {gap.distinguishable for gap in gaps} == {True, False}, "the example holds both"
    text = comparison_html(view)
    assert "not distinguishable</td>" in text
    assert 'class="point same"' in text
    assert 'class="point surely"' in text


def test_names_in_a_crowd_become_numbers_of_the_table() -> None:
    crowd = tuple(
        Compared(label=f"policy-{k}", runs=1, in_sla=exactly(0.99), replica_minutes=exactly(10 + k / 1000))
        for k in range(12)
    )
    group = Group(title="w", latency_target_s=0.5, percentile=0.999, reference="policy-0", compared=crowd)
    words = re.findall(r'class="strong"[^>]*>([^<]+)<', pareto(group, NARROW_PX))
    assert len(words) == 12
    assert any(word.isdigit() for word in words)


def test_a_name_cannot_break_out() -> None:
    view = example_comparison()
    hostile = replace(view.groups[0].compared[1], label="<script>alert(1)</script>")
    group = replace(view.groups[0], compared=(view.groups[0].compared[0], hostile))
    assert "<script" not in comparison_html(replace(view, groups=(group,)))


def test_nothing_late_and_nothing_spent_can_be_drawn() -> None:
    one = Compared(label="idle", runs=1, in_sla=exactly(1.0), replica_minutes=exactly(0.0), on_front=True)
    group = Group(title="silence", latency_target_s=0.5, percentile=1.0, reference="idle", compared=(one,))
    view = ComparisonView(title="t", verdict="v", groups=(group, replace(group, compared=())))
    assert ">none</text>" in comparison_html(view)


def test_simulated_policies_become_a_view(tmp_path) -> None:  # type: ignore[no-untyped-def]
    sure = Against(mean=-0.01, low=-0.01, high=-0.01, distinguishable=True)
    found = Comparison(
        rows=(figures("a", in_sla=0.98, cost=22.0, against=sure), figures("b", in_sla=0.9995, cost=25.0)),
        missing=(Missing(run="w1 c", why="it broke"),),
    )
    view = policies_view(found, target_of=promised, command="tailpack compare")
    assert view.verdict == (
        "w1 payment.partitions=9: of 2 policies 1 keeps the promise, b for the least (25.00 replica-minutes)."
    )
    assert view.problems == ("w1 c: it broke",)
    assert view.groups[0].bound_replica_minutes == pytest.approx(20)
    write_comparison(view, tmp_path / "comparison.html")
    assert [place.name for place in tmp_path.iterdir()] == ["comparison.html"]
    assert "-1 pp" in (tmp_path / "comparison.html").read_text(encoding="utf-8")


def test_where_nobody_keeps_the_promise_the_closest_is_named() -> None:
    found = Comparison(rows=(figures("a", in_sla=0.98, cost=22.0), figures("b", in_sla=0.99, cost=25.0)), missing=())
    assert "nobody keeps the promise; b comes closest (99 %)" in policies_view(found, target_of=promised).verdict


def test_a_comparison_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="nothing to compare"):
        policies_view(Comparison(rows=(), missing=()), target_of=promised)


def test_names_stand_beside_the_lines_of_the_intervals() -> None:
    wide = [
        Compared(
            label=label, runs=1, in_sla=Interval(at, at - 0.002, at + 0.002),
            replica_minutes=Interval(cost, cost - 4, cost + 4), on_front=True,
        )
        for label, at, cost in (("here", 0.99, 30.0), ("there", 0.95, 20.0))
    ]  # fmt: skip
    group = Group(title="w", latency_target_s=0.5, percentile=0.999, reference="here", compared=tuple(wide))
    drawn = pareto(group, WIDE_PX)
    heights = [float(y) for y in re.findall(r'<circle cx="[\d.]+" cy="([\d.]+)"', drawn)]
    names = [float(y) for y in re.findall(r'<text x="[\d.]+" y="([\d.]+)" class="strong"', drawn)]
    assert len(names) == len(heights) == 2
    assert all(not name - 11 < height < name + 3 for name in names for height in heights)


def test_the_words_of_the_page_are_explained_on_it() -> None:
    text = comparison_html(example_comparison())
    for word, _ in compared_terms():
        assert f"<dt>{word}</dt>" in text


def test_an_interval_is_not_torn_apart() -> None:
    text = comparison_html(example_comparison())
    assert ">99.932\u00a0% (99.922\u00a0%\u00a0–\u2060\u00a099.941\u00a0%)</td>" in text
