"""The comparison of simulated policies (`bench.comparison`) as the page shows it."""

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Final

from bench.comparison.compare import Comparison
from bench.comparison.rows import PolicyFigures
from bench.sections import Target
from report.page.comparison_view import Compared, ComparisonView, Gap, Group
from report.statistics import Against
from report.wording import minutes, several, share

METHOD: Final = (
    "Intervals hold 95 % of 10,000 seeded bootstrap draws over the seeds; differences are paired by seed, so what both "
    "policies suffer cancels out. Where nothing is left to chance one run says all, and there is no interval. All runs "
    "are simulated."
)


def policies_view(
    comparison: Comparison,
    *,
    target_of: Callable[[str], Target],
    command: str = "",
    provenance: tuple[tuple[str, str], ...] = (),
) -> ComparisonView:
    """Return the view: a group for each world. target_of: what a scenario promises.

    Raises ValueError for a comparison without rows.
    """
    if not comparison.rows:
        raise ValueError("no policy was run to the end, so there is nothing to compare")
    worlds = [list(some) for _, some in groupby(comparison.rows, key=lambda row: (row.scenario, row.settings))]
    groups = tuple(_group(rows, target_of(rows[0].scenario)) for rows in worlds)
    return ComparisonView(
        title=f"Policies in {', '.join(dict.fromkeys(group.title for group in groups))}",
        verdict=" ".join(map(_verdict, groups)),
        groups=groups,
        method=METHOD,
        problems=tuple(f"{missing.run}: {missing.why}" for missing in comparison.missing),
        command=command,
        provenance=provenance,
    )


def _group(rows: Sequence[PolicyFigures], target: Target) -> Group:
    first = rows[0]
    bounds = [row.replica_minutes.mean / row.bound_ratio.mean for row in rows if row.bound_ratio.mean > 0]
    return Group(
        title=" ".join([first.scenario, *first.settings]),
        latency_target_s=target.latency_target_s,
        percentile=target.percentile,
        reference=first.reference,
        compared=tuple(map(_compared, rows)),
        bound_replica_minutes=sum(bounds) / len(bounds) if bounds else None,
        note=f"Left to chance: {', '.join(first.random)}." if first.random else "Nothing is left to chance.",
    )


def _compared(row: PolicyFigures) -> Compared:
    return Compared(
        label=row.policy,
        runs=row.seeds,
        in_sla=row.in_sla,
        replica_minutes=row.replica_minutes,
        p99_s=row.p99_s,
        p999_s=row.p999_s,
        on_front=row.on_front,
        in_sla_gap=_gap(row.in_sla_difference),
        replica_minutes_gap=_gap(row.replica_minutes_difference),
        p999_gap_s=_gap(row.p999_difference_s),
        note=f"{several(row.lost, 'event')} lost" if row.lost else "",
    )


def _gap(found: Against | None) -> Gap | None:
    if found is None:
        return None
    return Gap(mean=found.mean, low=found.low, high=found.high, distinguishable=found.distinguishable)


def _verdict(group: Group) -> str:
    """Return who keeps the promise for the least, or that nobody does."""
    keep = [one for one in group.compared if one.in_sla.mean >= group.percentile]
    if not keep:
        best = max(group.compared, key=lambda one: one.in_sla.mean)
        return f"{group.title}: nobody keeps the promise; {best.label} comes closest ({share(best.in_sla.mean)})."
    cheapest = min(keep, key=lambda one: one.replica_minutes.mean)
    return (
        f"{group.title}: of {several(len(group.compared), 'policy').replace('policys', 'policies')} {len(keep)} "
        f"{'keeps' if len(keep) == 1 else 'keep'} the promise, {cheapest.label} for the least "
        f"({minutes(cheapest.replica_minutes.mean)} replica-minutes)."
    )
