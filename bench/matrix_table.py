"""Summarise a matrix: means with intervals over seeds, paired differences, Pareto fronts, tables and a plot."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from statistics import fmean
from typing import Final

import msgspec

from bench.jobs import FAILED, OPTIMUM, Announce, Job, Row, run, sorted_changes
from bench.matrix import Case, Contender, Matrix
from bench.simulation.sent_events import CLAIRVOYANT
from report.measures import Interval, PairedDifference, bootstrap_interval, paired_difference, pareto_front
from report.run_info import CLAIRVOYANT_POLICIES
from report.wording import minutes, share

REFERENCES: Final = ("tail-aware", "algorithm-2")
"""The reference is the first of these that takes part, or else the first contender of the matrix."""
MEANS: Final = (
    *("in_sla", "in_sla_after_surge", "p50_s", "p99_s", "p999_s", "max_s", "replica_minutes"),
    *("scale_ups", "scale_downs", "reassignments", "moved_partitions"),
)
"""Figures of a run that are averaged over the seeds."""
CHANGES: Final = ("scale_ups", "scale_downs", "reassignments")
DIFFERENCES: Final = ("in_sla", "replica_minutes")
NONE_LATE: Final = 1e-6
"""Value that the plot shows for a share of 0, because its axis is logarithmic."""
MAX_PANELS: Final = 12
"""Maximum number of cases in the plot."""


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


def interval(value: Interval | PairedDifference | None, times: float, number_format: str) -> str:
    """Return "mean (low to high)", each multiplied by `times`; only the mean if all runs are equal."""
    if value is None:
        return "–"
    mean, low, high = (format(times * figure, number_format) for figure in (value.mean, value.low, value.high))
    return mean if low == mean == high else f"{mean} ({low} to {high})"


def difference(value: PairedDifference | None, times: float, number_format: str) -> str:
    """Return a difference with its interval, in brackets if it cannot be distinguished from 0."""
    shown = interval(value, times, "+" + number_format)
    return shown if value is None or value.distinguishable or not value.mean else f"[{shown}]"


COLUMNS: Final[dict[str, Callable[[Line], str]]] = {
    "policy": lambda line: f"`{line.policy}`",
    "in time": lambda line: share(line.figures["in_sla"].mean) + (f", {line.lost} lost" if line.lost else ""),
    "after the first surge, %": lambda line: interval(line.figures.get("in_sla_after_surge"), 100, ".3f"),
    "least seed": lambda line: share(line.least_in_sla),
    "p99.9, ms": lambda line: interval(line.figures.get("p999_s"), 1e3, ",.0f"),
    "max, ms": lambda line: interval(line.figures.get("max_s"), 1e3, ",.0f"),
    "r-m": lambda line: interval(line.figures["replica_minutes"], 1, ".2f"),
    "× packing": lambda line: interval(line.figures.get("packing_ratio"), 1, ".3f"),
    "over the optimum": lambda line: interval(line.figures.get("regret"), 1, "+.1%"),
    "changes": lambda line: f"{sum(line.figures[name].mean for name in CHANGES if name in line.figures):.4g}",
    "points more": lambda line: difference(line.more.get("in_sla"), 100, ".3f"),
    "r-m more": lambda line: difference(line.more.get("replica_minutes"), 1, ".2f"),
    "Pareto front": lambda line: (
        "knows the future" if line.policy in CLAIRVOYANT_POLICIES else "yes" if line.on_front else "no"
    ),
}


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    return "\n".join("| " + " | ".join(row) + " |" for row in (header, ["---"] * len(header), *rows)) + "\n"


def page(found: Comparison) -> str:
    """Return the comparison in Markdown: a summary of several cases, and a table for each case."""
    parts = [f"# {found.title}", METHOD]
    cases = [list(some) for _, some in groupby(found.rows, key=lambda line: line.case)]
    if len(cases) > 1 and not found.axis:
        parts += ["## All cases", table(SUMMARY, [_summary(name, cases) for name in _everywhere(cases)])]
    for lines in cases:
        if found.axis:
            parts += [f"## {lines[0].case}: in time, r-m (× packing) over {found.axis}", _by_point(lines)]
            continue
        parts += [f"## {lines[0].case}", _chance(lines[0])]
        parts.append(table(tuple(COLUMNS), [[cell(line) for cell in COLUMNS.values()] for line in lines]))
    return "\n\n".join(parts)


def _by_point(lines: Sequence[Line]) -> str:
    names, points = (list(dict.fromkeys(getattr(line, of) for line in lines)) for of in ("policy", "point"))
    cells = {(line.point, line.policy): _cell(line) for line in lines}
    return table(("", *names), [(point, *(cells.get((point, name), "–") for name in names)) for point in points])


METHOD: Final = (
    "All runs are simulated. Intervals contain 95 % of 10,000 bootstrap samples over the seeds. *More* is the "
    "difference from the reference, paired by seed. Brackets mark a difference that cannot be distinguished from 0. "
    "r-m: replica-minutes."
)
SUMMARY: Final = ("policy", "in time, mean", "least case", "cases with 99.9 %", "r-m, mean", "Pareto front in")


def _everywhere(cases: Sequence[Sequence[Line]]) -> list[str]:
    names = dict.fromkeys(line.policy for lines in cases for line in lines)
    return [name for name in names if all(any(line.policy == name for line in lines) for lines in cases)]


def _summary(name: str, cases: Sequence[Sequence[Line]]) -> tuple[str, ...]:
    own = [line for lines in cases for line in lines if line.policy == name]
    shares = [line.figures["in_sla"].mean for line in own]
    met, front = sum(in_time >= 0.999 for in_time in shares), sum(line.on_front for line in own)
    cost = fmean(line.figures["replica_minutes"].mean for line in own)
    return f"`{name}`", share(fmean(shares)), share(min(shares)), str(met), f"{cost:.1f}", f"{front} of {len(own)}"


def _cell(line: Line) -> str:
    ratio = line.figures.get("packing_ratio")
    packing = f" ({ratio.mean:.2f} ×)" if ratio else ""
    return f"{share(line.figures['in_sla'].mean)}, {minutes(line.figures['replica_minutes'].mean)}{packing}"


def _chance(line: Line) -> str:
    events = f"{line.events:,.0f} events."
    best, lower = (line.figures.get(name) for name in ("optimum_replica_minutes", "optimum_lower"))
    optimum = f" Optimum: {best.mean:.2f} r-m, lower bound {lower.mean:.2f}." if best and lower else ""
    if not line.random:
        return f"{events} Nothing is random: one run per contender.{optimum}"
    return f"{events} Random: {', '.join(line.random)}; {line.seeds} seeds. Reference: {line.reference}.{optimum}"


def draw(found: Comparison, path: Path) -> None:
    """Write an SVG plot with a panel for each case: share of late events by axis value, or without an axis by cost."""
    import matplotlib as mpl  # noqa: PLC0415  half a second, needed only here
    from matplotlib.figure import Figure  # noqa: PLC0415

    panels = [list(some) for _, some in groupby(found.rows, key=lambda line: line.case)][:MAX_PANELS]
    columns = min(3, len(panels))
    rows = -(-len(panels) // columns)
    with mpl.rc_context({"font.size": 9, "axes.grid": True, "grid.alpha": 0.3}):
        figure = Figure(figsize=(max(6, 4.4 * columns), 3.2 * rows + 0.6), layout="constrained")
        fields = figure.subplots(rows, columns, squeeze=False)
        for axes, lines in zip(fields.flat, panels, strict=False):
            points = list(dict.fromkeys(line.point for line in lines))
            for name in dict.fromkeys(line.policy for line in lines):
                own = [line for line in lines if line.policy == name]
                x = [points.index(line.point) if found.axis else line.figures["replica_minutes"].mean for line in own]
                late = [max(1 - line.figures["in_sla"].mean, NONE_LATE) for line in own]
                axes.plot(x, late, "o-", markersize=4, linewidth=1, label=name)
            if found.axis:
                axes.set_xticks(range(len(points)), [point.replace(", ", ",\n") for point in points], fontsize=7)
            axes.set_yscale("log")
            axes.set_title(lines[0].case, loc="left", fontsize=8)
            axes.set(xlabel=found.axis or "replica-minutes", ylabel=f"share of late events ({NONE_LATE:.0e}: none)")
        figure.legend(*fields[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=8)
        figure.savefig(path, format="svg")
