"""A comparison of runs as what its HTML page draws."""

from report.page.comparison_sheets import TITLE, name_of, runs_of
from report.page.comparison_view import Compared, ComparisonView, Gap, Group
from report.page.run_comparison import (
    ComparedRun,
    Contestant,
    RunComparison,
    RunDifference,
    SameEvents,
    ScenarioCompared,
)
from report.statistics import Against


def view(found: RunComparison) -> ComparisonView:
    """Return what the HTML page draws."""
    return ComparisonView(
        title=TITLE,
        verdict=found.verdict,
        groups=tuple(map(_group, found.scenarios)),
        method=found.method,
        problems=found.problems,
        command=found.command,
        provenance=tuple((run.run, _run(run)) for run in runs_of(found)),
    )


def _run(run: ComparedRun) -> str:
    commit = f", commit {run.commit}" if run.commit else ""
    return f"{run.contestant}, seed {run.seed}{commit}; its own report names versions and machine"


def _group(one: ScenarioCompared) -> Group:
    differences = {each.label: each for each in one.differences}
    return Group(
        title=name_of(one),
        latency_target_s=one.latency_target_s,
        percentile=one.percentile,
        reference=one.reference,
        compared=tuple(_compared(each, differences.get(each.label)) for each in one.contestants),
        bound_replica_minutes=one.bound_replica_minutes,
    )


def _compared(one: Contestant, difference: RunDifference | None) -> Compared:
    return Compared(
        label=one.label,
        runs=one.runs,
        in_sla=one.in_sla,
        replica_minutes=one.replica_minutes,
        p99_s=one.p99_s,
        p999_s=one.p999_s,
        on_front=one.on_front,
        in_sla_gap=_gap(difference.in_sla) if difference else None,
        replica_minutes_gap=_gap(difference.replica_minutes) if difference else None,
        p99_gap_s=_gap(difference.p99_s) if difference else None,
        p999_gap_s=_gap(difference.p999_s) if difference else None,
        note=_same_text(difference.same_events) if difference and difference.same_events else "",
    )


def _gap(value: Against | None) -> Gap | None:
    if value is None:
        return None
    return Gap(mean=value.mean, low=value.low, high=value.high, distinguishable=value.distinguishable)


def _same_text(same: SameEvents) -> str:
    return (
        f"Event by event, {same.paired:,} of {same.of:,} being the same as the reference's: "
        f"{same.late_in_both:,} late in both, {same.late_only_here:,} only here, "
        f"{same.late_only_in_reference:,} only in the reference."
    )
