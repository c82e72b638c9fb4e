"""Show a comparison: a page of tables in Markdown, and a plot."""

from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path
from statistics import fmean
from typing import Final

from bench.matrix_table import Comparison, Line
from report.measures import Interval, PairedDifference
from report.run_info import CLAIRVOYANT_POLICIES
from report.wording import minutes, share

CHANGES: Final = ("scale_ups", "scale_downs", "reassignments")
NONE_LATE: Final = 1e-6
"""Value that the plot shows for a share of 0, because its axis is logarithmic."""
MAX_PANELS: Final = 12
"""Maximum number of cases in the plot."""


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
