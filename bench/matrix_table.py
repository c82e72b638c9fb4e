"""What a matrix came to: means with intervals over seeds, paired differences, the Pareto front, a table and a plot."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from statistics import fmean
from typing import Any, Final

import msgspec

from bench.matrix import FAILED, OPTIMUM, Announce, Case, Contender, Job, Matrix, Row, run
from bench.simulation.build import CLAIRVOYANT
from report.measures import Against, Interval, bootstrap_interval, paired_difference, pareto_front
from report.run_info import FORESEEING
from report.wording import minutes, share

REFERENCES: Final = ("tail-aware", "algorithm-2")
"""The contender that others are compared with: the first of these that takes part, else the first of all."""
MEANS: Final = (
    *("in_sla", "p50_s", "p99_s", "p999_s", "max_s", "replica_minutes"),
    *("scale_ups", "scale_downs", "reassignments", "moved_partitions"),
)
"""Figures of a run whose mean is in the table under the same name."""
DIFFERENCES: Final = {
    "in_sla": "in_sla_difference",
    "p999_s": "p999_difference_s",
    "replica_minutes": "replica_minutes_difference",
}
NONE_LATE: Final = 1e-6
"""Where a share of 0 is drawn on a logarithmic axis."""
PANELS: Final = 12
"""Cases that are drawn at most."""


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One contender in one case: means over seeds with 95 % bootstrap intervals; None where a figure is not known."""

    scenario: str
    policy: str
    """Name of the contender."""
    settings: tuple[str, ...]
    """Set over the scenario, key=value."""
    case: str
    """The scenario and what is set over it, without the contender's own settings."""
    point: str
    """On the axis."""
    random: tuple[str, ...]
    """What the seeds change; none: one run is the result."""
    seeds: int
    events: float
    in_sla: Interval
    least_in_sla: float
    """Of the seeds."""
    p50_s: Interval | None = None
    p99_s: Interval | None = None
    p999_s: Interval | None = None
    max_s: Interval | None = None
    replica_minutes: Interval
    packing_ratio: Interval | None = None
    """Replica-minutes over those of the per-second packing of the same events."""
    optimum_replica_minutes: float | None = None
    optimum_lower: float | None = None
    regret: Interval | None = None
    """Replica-minutes over the optimum of the same events − 1; None where that is unknown, or the SLO is not met."""
    scale_ups: Interval | None = None
    scale_downs: Interval | None = None
    reassignments: Interval | None = None
    moved_partitions: Interval | None = None
    lost: int
    reference: str
    in_sla_difference: Against | None = None
    """Minus the reference on the same seeds; None for the reference itself, and where it has no result."""
    p999_difference_s: Against | None = None
    replica_minutes_difference: Against | None = None
    on_front: bool = False
    """No other contender of the case has more events in time at the same cost, or as many at less."""


class Missing(msgspec.Struct, frozen=True, kw_only=True):
    """A run without a result."""

    run: str
    why: str


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """All lines by case and contender, and the runs that failed."""

    title: str
    rows: tuple[Line, ...]
    missing: tuple[Missing, ...]
    axis: str = ""


def compare(matrix: Matrix, folder: Path, *, processes: int = 0, announce: Announce = lambda *_: None) -> Compared:
    """Run the matrix. Raises InvalidSettingsError before anything is computed."""
    asked = [(case, {one: case.jobs(one, matrix.seeds) for one in matrix.playing(case)}) for case in matrix.swept()]
    optima = {case: _optima(case, matrix.seeds) if matrix.optimum else [] for case, _ in asked}
    jobs = [job for _, contenders in asked for some, _ in contenders.values() for job in some]
    rows = run([*jobs, *(job for some in optima.values() for job in some)], folder,
               processes=processes, announce=announce)  # fmt: skip
    return Compared(
        title=matrix.title,
        rows=tuple(line for case, contenders in asked for line in _lines(case, contenders, rows, optima[case])),
        missing=tuple(Missing(run=str(job), why=row[FAILED]) for job, row in rows.items() if FAILED in row),
        axis=matrix.axis.varies if matrix.axis else "",
    )


def _optima(case: Case, seeds: int) -> list[Job]:
    from bench.simulation.optimum import why_not  # noqa: PLC0415  compiled code only where it is needed
    from bench.simulation.sent import sent_by  # noqa: PLC0415

    jobs, _ = case.jobs(Contender.of(CLAIRVOYANT), seeds)
    question = jobs[0].question()
    return [] if why_not(question, sent_by(question)) else [msgspec.structs.replace(one, how=OPTIMUM) for one in jobs]


Asked = Mapping[Contender, tuple[Sequence[Job], tuple[str, ...]]]


def _lines(case: Case, asked: Asked, rows: Mapping[Job, Row], optima: Sequence[Job]) -> Iterator[Line]:
    """Yield the lines of one case. A contender that failed with any seed has none: the others would mislead."""
    names = [one.name for one in asked]
    reference = next((one for one in REFERENCES if one in names), names[0])
    ran = {
        one.name: [rows[job] for job in jobs]
        for one, (jobs, _) in asked.items()
        if not any(FAILED in rows[job] for job in jobs)
    }
    best = {job.seed: rows[job] for job in optima if rows[job].get("optimum_replica_minutes")}
    playing = [name for name in ran if not any(one.name == name and one.policy in FORESEEING for one in asked)]
    points = [tuple(fmean(row[key] for row in ran[name]) for key in ("in_sla", "replica_minutes")) for name in playing]
    front = {playing[at] for at in pareto_front([(more, less) for more, less in points])}
    for one, (jobs, random) in asked.items():
        if one.name not in ran:
            continue
        some, others = ran[one.name], [] if one.name == reference else ran.get(reference, [])
        known = len(some) > 1 or not random
        pairs = [(row, best[row["seed"]]) for row in some if row["seed"] in best]
        whole = len(pairs) == len(some)
        kept = fmean(row["in_sla"] for row in some) >= jobs[0].question().target.percentile
        over = [row["replica_minutes"] / least["optimum_replica_minutes"] - 1 for row, least in pairs]
        figures: dict[str, Any] = {name: _mean(some, name) for name in MEANS}
        figures |= {to: _against(some, others, name, known=known) for name, to in DIFFERENCES.items()}
        yield Line(
            scenario=case.scenario,
            policy=one.name,
            settings=tuple(f"{key}={value}" for key, value in {**dict(case.changes), **dict(one.changes)}.items()),
            case=case.label,
            point=case.point,
            random=random,
            seeds=len(some),
            events=fmean(row["events"] for row in some),
            least_in_sla=min(row["in_sla"] for row in some),
            packing_ratio=_over_packing(some),
            optimum_replica_minutes=fmean(least["optimum_replica_minutes"] for _, least in pairs) if whole else None,
            optimum_lower=fmean(least["lower"] for _, least in pairs) if whole else None,
            regret=bootstrap_interval(over) if whole and kept else None,
            lost=sum(row.get("lost", 0) for row in some),
            reference=reference,
            on_front=one.name in front,
            **figures,
        )


def _over_packing(rows: Sequence[Row]) -> Interval | None:
    least = [row.get("packing_replica_minutes") for row in rows]
    ratios = [row["replica_minutes"] / one for row, one in zip(rows, least, strict=True) if one]
    return bootstrap_interval(ratios) if len(ratios) == len(rows) else None


def _mean(rows: Sequence[Row], name: str) -> Any:
    values = [row[name] for row in rows if row.get(name) is not None]
    return bootstrap_interval(values) if values else None


def _against(rows: Sequence[Row], others: Sequence[Row], name: str, *, known: bool) -> Against | None:
    pairs = [(row[name], other[name]) for row, other in zip(rows, others)]  # noqa: B905  no others: no pairs
    pairs = [pair for pair in pairs if None not in pair]
    if not pairs:
        return None
    found = paired_difference(*map(list, zip(*pairs, strict=True)))
    return msgspec.structs.replace(found, distinguishable=known and found.distinguishable)


def interval(value: Interval | None, times: float, how: str) -> str:
    """Return mean (low to high) in another unit; the mean alone where all runs were equal."""
    if value is None:
        return "–"
    mean, low, high = (format(times * one, how) for one in (value.mean, value.low, value.high))
    return mean if low == mean == high else f"{mean} ({low} to {high})"


def difference(value: Against | None, times: float, how: str) -> str:
    """Return a difference with its interval; in brackets where it is not distinguishable from none."""
    if value is None:
        return "–"
    mean, low, high = (format(times * one, "+" + how) for one in (value.mean, value.low, value.high))
    said = mean if low == high else f"{mean} ({low} to {high})"
    return said if value.distinguishable or not value.mean else f"[{said}]"


COLUMNS: Final[dict[str, Callable[[Line], str]]] = {
    "policy": lambda line: f"`{line.policy}`",
    "in time": lambda line: share(line.in_sla.mean) + (f", {line.lost} lost" if line.lost else ""),
    "least seed": lambda line: share(line.least_in_sla),
    "p99.9, ms": lambda line: interval(line.p999_s, 1e3, ",.0f"),
    "max, ms": lambda line: interval(line.max_s, 1e3, ",.0f"),
    "r-m": lambda line: interval(line.replica_minutes, 1, ".2f"),
    "× packing": lambda line: interval(line.packing_ratio, 1, ".3f"),
    "over the optimum": lambda line: interval(line.regret, 1, "+.1%"),
    "changes": lambda line: (
        f"{sum(one.mean for one in (line.scale_ups, line.scale_downs, line.reassignments) if one):.4g}"
    ),
    "points more": lambda line: difference(line.in_sla_difference, 100, ".3f"),
    "r-m more": lambda line: difference(line.replica_minutes_difference, 1, ".2f"),
    "on the front": lambda line: "knows the future" if line.policy in FORESEEING else "yes" if line.on_front else "no",
}


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    return "\n".join("| " + " | ".join(row) + " |" for row in (header, ["---"] * len(header), *rows)) + "\n"


def page(found: Compared) -> str:
    """Return the comparison in Markdown: of several cases a summary, then each case; with an axis a table for each
    scenario.
    """
    parts = [f"# {found.title}", METHOD]
    cases = [list(some) for _, some in groupby(found.rows, key=lambda line: line.case)]
    if found.axis:
        for case, some in groupby(found.rows, key=lambda line: line.case):
            lines = list(some)
            names, cells = dict.fromkeys(line.policy for line in lines), {(one.point, one.policy): one for one in lines}
            body = [
                (point, *(_cell(cells.get((point, name))) for name in names))
                for point in dict.fromkeys(line.point for line in lines)
            ]
            parts += [f"## {case}: in time, r-m (× packing) over {found.axis}", table(("", *names), body)]
        return "\n\n".join(parts)
    if len(cases) > 1:
        parts += ["## All cases", table(SUMMARY, [_summary(name, cases) for name in _everywhere(cases)])]
    for lines in cases:
        parts += [f"## {lines[0].case}", _chance(lines[0])]
        parts.append(table(tuple(COLUMNS), [[cell(line) for cell in COLUMNS.values()] for line in lines]))
    return "\n\n".join(parts)


METHOD: Final = (
    "All runs are simulated. Intervals hold 95 % of 10,000 bootstrap draws over the seeds. *More* is the difference "
    "from the reference, paired by seed; in brackets where it is not distinguishable from none. r-m: replica-minutes."
)
SUMMARY: Final = ("policy", "in time, mean", "least case", "cases with 99.9 %", "r-m, mean", "on the front in")


def _everywhere(cases: Sequence[Sequence[Line]]) -> list[str]:
    names = dict.fromkeys(line.policy for lines in cases for line in lines)
    return [name for name in names if all(any(line.policy == name for line in lines) for lines in cases)]


def _summary(name: str, cases: Sequence[Sequence[Line]]) -> tuple[str, ...]:
    own = [line for lines in cases for line in lines if line.policy == name]
    shares = [line.in_sla.mean for line in own]
    kept, front = sum(one >= 0.999 for one in shares), sum(line.on_front for line in own)
    cost = fmean(line.replica_minutes.mean for line in own)
    return f"`{name}`", share(fmean(shares)), share(min(shares)), str(kept), f"{cost:.1f}", f"{front} of {len(own)}"


def _cell(line: Line | None) -> str:
    if line is None:
        return "–"
    ratio = f" ({line.packing_ratio.mean:.2f} ×)" if line.packing_ratio else ""
    return f"{share(line.in_sla.mean)}, {minutes(line.replica_minutes.mean)}{ratio}"


def _chance(line: Line) -> str:
    events, best = f"{line.events:,.0f} events.", line.optimum_replica_minutes
    optimum = f" Optimum: {best:.2f} r-m, no schedule below {line.optimum_lower:.2f}." if best is not None else ""
    if not line.random:
        return f"{events} Nothing is left to chance here: one run says all.{optimum}"
    return f"{events} At random: {', '.join(line.random)}; {line.seeds} seeds. Reference: {line.reference}.{optimum}"


def draw(found: Compared, path: Path) -> None:
    """Write the plot as an SVG file: the share of late events of each case along the axis, or against the cost."""
    import matplotlib as mpl  # noqa: PLC0415  half a second, and only here
    from matplotlib.figure import Figure  # noqa: PLC0415

    panels = [list(some) for _, some in groupby(found.rows, key=lambda line: line.case)][:PANELS]
    columns = min(3, len(panels))
    rows = -(-len(panels) // columns)
    with mpl.rc_context({"font.size": 9, "axes.grid": True, "grid.alpha": 0.3}):
        figure = Figure(figsize=(max(6, 4.4 * columns), 3.2 * rows + 0.6), layout="constrained")
        fields = figure.subplots(rows, columns, squeeze=False)
        for axes, lines in zip(fields.flat, panels, strict=False):
            points = list(dict.fromkeys(line.point for line in lines))
            for name in dict.fromkeys(line.policy for line in lines):
                own = [line for line in lines if line.policy == name]
                x = [points.index(one.point) if found.axis else one.replica_minutes.mean for one in own]
                late = [max(1 - one.in_sla.mean, NONE_LATE) for one in own]
                axes.plot(x, late, "o-", markersize=4, linewidth=1, label=name)
            if found.axis:
                axes.set_xticks(range(len(points)), [point.replace(", ", ",\n") for point in points], fontsize=7)
            axes.set_yscale("log")
            axes.set_title(lines[0].case, loc="left", fontsize=8)
            axes.set(xlabel=found.axis or "replica-minutes", ylabel=f"share of late events ({NONE_LATE:.0e}: none)")
        figure.legend(*fields[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=8)
        figure.savefig(path, format="svg")
