"""The comparison of simulated policies as the record that the report's comparison page shows."""

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Final

from autoscaler.policies.settings import Target
from bench.experiments.compare import Comparison, PolicyFigures
from report.comparison import Contestant, RunComparison, ScenarioCompared, verdict

METHOD: Final = (
    "Intervals hold 95 % of 10,000 seeded bootstrap draws over the seeds; differences are paired by seed, so what both "
    "policies suffer cancels out. Where nothing is left to chance one run says all, and there is no interval. All runs "
    "are simulated."
)


def policies_compared(
    comparison: Comparison, *, target_of: Callable[[str], Target], command: str = ""
) -> RunComparison:
    """Return the comparison, scenario by scenario. target_of: what a scenario promises.

    Raises ValueError for a comparison without rows.
    """
    if not comparison.rows:
        raise ValueError("no policy was run to the end, so there is nothing to compare")
    worlds = [list(some) for _, some in groupby(comparison.rows, key=lambda row: (row.scenario, row.settings))]
    scenarios = tuple(_scenario(rows, target_of(rows[0].scenario)) for rows in worlds)
    lost = (f"{row.scenario} {row.policy}: {row.lost:,} events lost" for row in comparison.rows if row.lost)
    return RunComparison(
        verdict=" ".join(map(verdict, scenarios)),
        scenarios=scenarios,
        problems=(*(f"{missing.run}: {missing.why}" for missing in comparison.missing), *lost),
        method=METHOD,
        command=command,
    )


def _scenario(rows: Sequence[PolicyFigures], target: Target) -> ScenarioCompared:
    first = rows[0]
    bounds = [row.replica_minutes.mean / row.bound_ratio.mean for row in rows if row.bound_ratio.mean > 0]
    return ScenarioCompared(
        scenario=first.scenario,
        settings=first.settings,
        latency_target_s=target.latency_target_s,
        percentile=target.percentile,
        reference=first.reference,
        bound_replica_minutes=sum(bounds) / len(bounds) if bounds else None,
        contestants=tuple(
            Contestant(
                label=row.policy,
                policy=row.policy,
                world="simulated",
                runs=row.seeds,
                pairs=0 if row.policy == row.reference else row.seeds,
                in_sla=row.in_sla,
                in_sla_difference=row.in_sla_difference,
                p99_s=row.p99_s,
                p999_s=row.p999_s,
                p999_difference_s=row.p999_difference_s,
                replica_minutes=row.replica_minutes,
                replica_minutes_difference=row.replica_minutes_difference,
                on_front=row.on_front,
            )
            for row in rows
        ),
    )
