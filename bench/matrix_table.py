"""Summarise a matrix: means with intervals over seeds, paired differences and Pareto fronts."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Final

import msgspec

from bench.jobs import FAILED, OPTIMUM, Announce, Job, Row, run, sorted_changes
from bench.matrix import Case, Contender, Matrix
from bench.simulation.sent_events import CLAIRVOYANT
from report.measures import Interval, PairedDifference, bootstrap_interval, paired_difference, pareto_front
from report.run_info import CLAIRVOYANT_POLICIES

REFERENCES: Final = ("tail-aware", "algorithm-2")
"""The reference is the first of these that takes part, or else the first contender of the matrix."""
MEANS: Final = (
    *("in_sla", "in_sla_after_surge", "p50_s", "p99_s", "p999_s", "max_s", "replica_minutes"),
    *("scale_ups", "scale_downs", "reassignments", "moved_partitions"),
)
"""Figures of a run that are averaged over the seeds."""
DIFFERENCES: Final = ("in_sla", "replica_minutes")


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of one contender in one case."""

    scenario: str
    policy: str
    """Label of the contender."""
    settings: tuple[str, ...]
    """Changes of the scenario, as key=value."""
    case: str
    """Scenario and changes as text, without the changes of the contender."""
    point: str
    """Label of the point on the axis."""
    random: tuple[str, ...]
    """Names of the parts that differ between seeds; empty: nothing differs, so there is one run."""
    seeds: int
    events: float
    figures: dict[str, Interval]
    """Known means over the seeds, with 95 % bootstrap intervals. They are those in MEANS, packing_ratio
    (replica-minutes divided by those of the per-second packing), optimum_replica_minutes, optimum_lower, and regret
    (replica-minutes divided by the optimum, minus 1; only if the SLO is met)."""
    least_in_sla: float
    """Lowest share in time of all seeds."""
    lost: int
    reference: str
    more: dict[str, PairedDifference]
    """Figure in DIFFERENCES → paired difference from the reference; empty for the reference."""
    on_front: bool
    """Whether the contender is on the case's Pareto front of share in time and cost."""


class Missing(msgspec.Struct, frozen=True, kw_only=True):
    """A run that failed, with the reason."""

    run: str
    why: str


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """The lines of all cases and contenders, and the runs that failed."""

    title: str
    rows: tuple[Line, ...]
    missing: tuple[Missing, ...]
    axis: str = ""


Entries = Sequence[tuple[Contender, Sequence[Job], tuple[str, ...]]]
"""Triples of a case: contender, its jobs, and their random parts."""


def compare(matrix: Matrix, folder: Path, *, processes: int = 0, announce: Announce = lambda *_: None) -> Comparison:
    """Run the matrix, and summarise it. Raises InvalidSettingsError before anything is computed."""
    axis, plan = matrix.resolve_axis(), list[tuple[Case, Entries, list[Job]]]()
    for case in matrix.cases_at_points():
        entries = [(contender, *case.jobs(contender, matrix.seeds)) for contender in matrix.contenders_of(case)]
        plan.append((case, entries, _optima(case, matrix.seeds) if matrix.optimum else []))
    jobs = [job for _, entries, optima in plan for some in (*(own for _, own, _ in entries), optima) for job in some]
    rows = run(jobs, folder, processes=processes, announce=announce)
    return Comparison(
        title=matrix.title,
        rows=tuple(line for case, entries, optima in plan for line in lines_of(case, entries, rows, optima)),
        missing=tuple(Missing(run=str(job), why=row[FAILED]) for job, row in rows.items() if FAILED in row),
        axis=axis.varies if axis else "",
    )


def _optima(case: Case, seeds: int) -> list[Job]:
    from bench.simulation.optimum import why_not  # noqa: PLC0415  compiled code only where it is needed
    from bench.simulation.sent_events import build_events  # noqa: PLC0415

    jobs, _ = case.jobs(Contender(policy=CLAIRVOYANT), seeds)
    scenario = jobs[0].read_scenario()
    is_possible = not why_not(scenario, build_events(scenario))
    return [msgspec.structs.replace(job, how=OPTIMUM) for job in jobs] if is_possible else []


def lines_of(case: Case, entries: Entries, rows: Mapping[Job, Row], optima: Sequence[Job] = ()) -> Iterator[Line]:
    """Yield the lines of one case. A contender with a failed run has no line, because its means would mislead."""
    labels = [contender.label for contender, *_ in entries]
    results = {contender.label: [rows[job] for job in jobs] for contender, jobs, _ in entries}
    results = {name: some for name, some in results.items() if not any(FAILED in row for row in some)}
    reference = next((name for name in REFERENCES if name in labels), labels[0])
    best = {job.seed: rows[job] for job in optima if rows[job].get("optimum_replica_minutes")}
    eligible = [contender for contender, *_ in entries if contender.policy not in CLAIRVOYANT_POLICIES]
    ranked = [contender.label for contender in eligible if contender.label in results]
    points = [(_mean(results[name], "in_sla"), _mean(results[name], "replica_minutes")) for name in ranked]
    front = {ranked[at] for at in pareto_front(points)}
    for contender, jobs, random in entries:
        if contender.label not in results:
            continue
        some, others = results[contender.label], [] if contender.label == reference else results.get(reference, [])
        is_slo_met = _mean(some, "in_sla") >= jobs[0].read_scenario().target.percentile
        yield Line(
            scenario=case.scenario,
            policy=contender.label,
            settings=tuple(f"{key}={value}" for key, value in sorted_changes(case.set, contender.set)),
            case=case.label,
            point=case.point,
            random=random,
            seeds=len(some),
            events=_mean(some, "events"),
            figures=_figures(some, best, is_slo_met=is_slo_met),
            least_in_sla=min(row["in_sla"] for row in some),
            lost=sum(row.get("lost", 0) for row in some),
            reference=reference,
            more={name: _difference(some, others, name, random=bool(random)) for name in DIFFERENCES if others},
            on_front=contender.label in front,
        )


def _mean(rows: Sequence[Row], name: str) -> float:
    return fmean(row[name] for row in rows)


def _figures(rows: Sequence[Row], best: Mapping[int, Row], *, is_slo_met: bool) -> dict[str, Interval]:
    known = {name: [row[name] for row in rows if row.get(name) is not None] for name in MEANS}
    spent = [row["replica_minutes"] for row in rows]
    packed = [row.get("packing_replica_minutes") for row in rows]
    if all(packed):
        known["packing_ratio"] = [cost / least for cost, least in zip(spent, packed, strict=True)]
    if all(row["seed"] in best for row in rows):
        optima = [best[row["seed"]] for row in rows]
        known["optimum_replica_minutes"] = least = [best_row["optimum_replica_minutes"] for best_row in optima]
        known["optimum_lower"] = [best_row["lower"] for best_row in optima]
        known["regret"] = [cost / optimum - 1 for cost, optimum in zip(spent, least, strict=True)] if is_slo_met else []
    return {name: bootstrap_interval(values) for name, values in known.items() if values}


def _difference(rows: Sequence[Row], others: Sequence[Row], name: str, *, random: bool) -> PairedDifference:
    found = paired_difference([row[name] for row in rows], [row[name] for row in others])
    known = len(rows) > 1 or not random
    return msgspec.structs.replace(found, distinguishable=known and found.distinguishable)
