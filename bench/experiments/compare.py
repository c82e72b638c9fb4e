"""Policies in worlds over seeds: what each came to, and against the policy that all are compared with."""

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

import msgspec

from autoscaler.optimum.optimum import Optimum
from bench.experiments.campaign import Missing, Outcomes, Simulations
from bench.experiments.experiment import Experiment, World
from bench.simulation.result import SimulationResult
from contracts.settings import Target
from report.comparison import Contestant, RunComparison, ScenarioCompared, verdict
from report.run_info import FORESEEING
from report.statistics import Against, Interval, bootstrap_interval, paired_difference, pareto_front


class PolicyFigures(msgspec.Struct, frozen=True, kw_only=True):
    """One policy in one scenario: means over seeds with 95 % bootstrap intervals. Latencies in seconds; None where no
    run had an event.
    """

    scenario: str
    policy: str
    settings: tuple[str, ...]
    """What was set over the scenario, key=value."""
    random: tuple[str, ...]
    """What the seeds changed; none: one run says all."""
    seeds: int
    events: float
    """Mean over seeds."""
    in_sla: Interval
    p50_s: Interval | None
    p99_s: Interval | None
    p999_s: Interval | None
    max_s: Interval | None
    replica_minutes: Interval
    packing_ratio: Interval
    """Replica-minutes over those of the per-second packing of the very events."""
    optimum_replica_minutes: float | None = None
    """Mean over seeds; None where it is not known."""
    optimum_lower: float | None = None
    """Likewise."""
    regret: Interval | None = None
    """Replica-minutes over the optimum of the very events − 1; None where that is not known, or the promise broken."""
    scale_ups: Interval
    scale_downs: Interval
    reassignments: Interval
    moved_partitions: Interval
    lost: int
    """Over all seeds."""
    reference: str
    """The policy that all are compared with."""
    in_sla_difference: Against | None
    """None for the reference itself, and where it has no result."""
    p999_difference_s: Against | None
    replica_minutes_difference: Against | None
    on_front: bool
    """No policy of this scenario keeps more events in SLA at the same cost, or as many at less."""


MEANS: Final = (
    *("in_sla", "p50_s", "p99_s", "p999_s", "max_s", "replica_minutes"),
    *("scale_ups", "scale_downs", "reassignments", "moved_partitions"),
)
"""Figures of a result of which a row has the mean, under the same name."""
DIFFERENCES: Final = {name: f"{name}_difference" for name in ("in_sla", "replica_minutes")} | {
    "p999_s": "p999_difference_s"
}
"""Figure of a result → field of the row that has its difference from the reference."""


REFERENCES: Final = ("tail-aware", "algorithm-2")
"""The policy that others are compared with: the first of these that takes part, else the first of all."""


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """All rows, by world and policy in the order asked for, and the runs that failed."""

    rows: tuple[PolicyFigures, ...]
    missing: tuple[Missing, ...]


def compare(
    campaign: Simulations, *, worlds: Sequence[World], policies: Sequence[str], seeds: int, optima: bool = False
) -> Comparison:
    """Run every policy in every world, with seeds 1 … `seeds` where a seed makes a difference.

    optima: look for the optimum of every world and seed, too, which takes longer than all policies.
    Raises InvalidSettingsError before anything is computed.
    """
    asked = {(one, policy): one.experiments(policy, seeds) for one in worlds for policy in policies}
    outcomes = campaign.run(one for some in asked.values() for one in some)
    rows = [
        row
        for one in worlds
        for row in _rows(one, {policy: asked[one, policy] for policy in policies}, outcomes, optima)
    ]
    return Comparison(rows=tuple(rows), missing=tuple(outcomes.missing))


def reference_of(policies: Sequence[str]) -> str:
    """Return the policy that the others are compared with."""
    return next((name for name in REFERENCES if name in policies), policies[0])


def _rows(
    one: World, asked: Mapping[str, Sequence[Experiment]], outcomes: Outcomes[SimulationResult], optima: bool
) -> list[PolicyFigures]:
    """Return the rows of one world; a policy that failed with any seed has none."""
    complete = outcomes.whole(asked)
    front = _front(complete)
    reference = reference_of(list(asked))
    rows = []
    for policy, results in complete.items():
        random = one.random(policy)
        least = [_optimum(each) for each in asked[policy]] if optima else []
        known = not random or len(results) > 1
        in_sla = sum(result.in_sla for result in results) / len(results)
        kept = in_sla >= asked[policy][0].question().target.percentile
        others = [] if policy == reference else complete.get(reference, [])
        figures: dict[str, Any] = {name: _mean([getattr(result, name) for result in results]) for name in MEANS}
        for name, difference in DIFFERENCES.items():
            pairs = zip(results, others, strict=bool(others))
            figures[difference] = _against([(getattr(a, name), getattr(b, name)) for a, b in pairs], known=known)
        row = PolicyFigures(
            scenario=one.scenario,
            policy=policy,
            settings=one.settings,
            random=random,
            seeds=len(results),
            events=sum(result.events for result in results) / len(results),
            packing_ratio=bootstrap_interval([one.replica_minutes / one.packing_replica_minutes for one in results]),
            **_beside(results, [best for best in least if best], kept=kept),
            lost=sum(result.lost for result in results),
            reference=reference,
            on_front=policy in front,
            **figures,
        )
        rows.append(row)
    return rows


def _beside(results: Sequence[SimulationResult], least: Sequence[Optimum], *, kept: bool) -> dict[str, Any]:
    """Return what a row says of the optimum; nothing unless it is known for every seed.

    kept: the policy keeps the promise; of one that breaks it no regret is told.
    """
    costs = [best.optimum_replica_minutes for best in least if best.optimum_replica_minutes]
    if len(costs) < len(results):
        return {}
    over = [one.replica_minutes / cost - 1 for one, cost in zip(results, costs, strict=True)]
    return {
        "optimum_replica_minutes": sum(costs) / len(costs),
        "optimum_lower": sum(best.lower for best in least) / len(least),
        "regret": bootstrap_interval(over) if kept else None,
    }


def _optimum(one: Experiment) -> Optimum | None:
    """Return the optimum of the experiment's events; None where it is not known."""
    from bench.simulation.optimum import find_optimum, why_not  # noqa: PLC0415  compiled code only where it is needed
    from bench.simulation.sent import sent_by  # noqa: PLC0415

    scenario = one.question()
    sent = sent_by(scenario)
    return None if why_not(scenario, sent) else find_optimum(scenario, sent)[0]


def _mean(values: Sequence[float | None]) -> Interval | None:
    found = [value for value in values if value is not None]
    return bootstrap_interval(found) if found else None


def _against(pairs: Sequence[tuple[float | None, float | None]], *, known: bool) -> Against | None:
    """known: the values say how much is chance; a single run of a random world does not."""
    both = [(a, b) for a, b in pairs if a is not None and b is not None]
    if not both:
        return None
    found = paired_difference([a for a, _ in both], [b for _, b in both])
    return Against(mean=found.mean, low=found.low, high=found.high, distinguishable=known and found.distinguishable)


def _front(complete: Mapping[str, Sequence[SimulationResult]]) -> set[str]:
    """Return the policies that no other beats, by their means."""
    playing = {policy: results for policy, results in complete.items() if policy not in FORESEEING}
    points = [
        (
            sum(result.in_sla for result in results) / len(results),
            sum(result.replica_minutes for result in results) / len(results),
        )
        for results in playing.values()
    ]
    return {list(playing)[number] for number in pareto_front(points)}


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
    bounds = [row.replica_minutes.mean / row.packing_ratio.mean for row in rows if row.packing_ratio.mean > 0]
    return ScenarioCompared(
        scenario=first.scenario,
        settings=first.settings,
        latency_target_s=target.latency_target_s,
        percentile=target.percentile,
        reference=first.reference,
        packing_replica_minutes=sum(bounds) / len(bounds) if bounds else None,
        contestants=tuple(
            Contestant(
                label=row.policy,
                world="simulated",
                runs=row.seeds,
                pairs=0 if row.policy == row.reference else row.seeds,
                **{name: getattr(row, name) for name in Contestant.__struct_fields__ if hasattr(row, name)},
            )
            for row in rows
        ),
    )
