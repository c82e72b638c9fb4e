"""Experiments in Markdown: every policy of a comparison, a sweep along its axis.

And the picture of a sweep.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import cycle, groupby
from pathlib import Path
from typing import Any, Final

from bench.experiments.compare import PolicyFigures
from bench.experiments.sweeps import SWEEPS, Sweep, SweepFigures
from bench.markdown import Columns, in_columns, sources, table
from bench.picture import COLORS, picture
from bench.results import Origin, load
from report.run_info import FORESEEING
from report.statistics import Against, Interval
from report.wording import share

NONE_LATE: Final = 1e-6
"""Where a share of 0 is drawn on the logarithmic axis, on which every nine has its room."""


def page(rows: Sequence[PolicyFigures], origins: Iterable[Origin]) -> str:
    """Return a section for each scenario; where the figures come from stands once, at the end."""
    sections = [_section(list(some)) for _, some in groupby(rows, key=lambda row: (row.scenario, row.settings))]
    return "\n".join(sections) + "\n" + sources(origins)


def estimate(value: Interval | Against | None, times: float, how: str) -> str:
    """Return mean (low–high) in another unit; the mean alone where all runs were equal; – where there is none."""
    if value is None:
        return "–"
    mean = format(times * value.mean, how)
    low, high = format(times * value.low, how), format(times * value.high, how)
    return mean if low == mean == high else f"{mean} ({low} to {high})"


def in_sla(value: Interval) -> str:
    """Return a share of events as it is said everywhere, with its interval unless all runs were equal."""
    if value.low == value.high:
        return share(value.mean)
    return f"{share(value.mean)} ({share(value.low)} to {share(value.high)})"


def against(value: Against | None, times: float, how: str) -> str:
    """Return the difference with its interval, or that there is none, or none to be seen."""
    if value is None:
        return "–"
    if value.distinguishable:
        return estimate(value, times, "+" + how)
    if value.low == value.high:
        return f"{estimate(value, times, '+' + how)}, one seed" if value.mean else "equal"
    interval = f" ({times * value.low:+{how}} to {times * value.high:+{how}})"
    return f"not distinguishable{interval}"


def _section(rows: Sequence[PolicyFigures]) -> str:
    reference = rows[0].reference
    others = [row for row in rows if row.policy != reference]
    lines = [
        f"## {rows[0].scenario}",
        "",
        _what_is_random(rows[0]),
        "",
        in_columns(ABSOLUTE, rows),
    ]
    if others and any(row.policy == reference for row in rows):
        lines += [f"Minus `{reference}`, on the same seeds:", "", in_columns(RELATIVE, rows)]
    return "\n".join(lines)


def _what_is_random(row: PolicyFigures) -> str:
    settings = f" Set over the scenario: {', '.join(row.settings)}." if row.settings else ""
    if not row.random:
        return f"{row.events:,.0f} events. Nothing is left to chance here: one run says all.{settings}"
    what = ", ".join(row.random)
    spread = f"{row.seeds} seeds; means with 95 % intervals" if row.seeds > 1 else "one seed: no interval is known"
    return f"{row.events:,.0f} events. At random: {what}; {spread}.{settings}"


def _milliseconds(name: str) -> Callable[[PolicyFigures], str]:
    return lambda row: estimate(getattr(row, name), 1e3, ",.0f")


def _on_front(row: PolicyFigures) -> str:
    return "knows the future" if row.policy in FORESEEING else "yes" if row.on_front else "no"


ABSOLUTE: Final[Columns] = {
    "policy": lambda row: f"`{row.policy}`",
    "in SLA": lambda row: in_sla(row.in_sla) + (f", {row.lost} lost" if row.lost else ""),
    "p99, ms": _milliseconds("p99_s"),
    "p99.9, ms": _milliseconds("p999_s"),
    "max, ms": _milliseconds("max_s"),
    "r-m": lambda row: estimate(row.replica_minutes, 1, ".2f"),
    "× packing": lambda row: estimate(row.packing_ratio, 1, ".3f"),
    "over the optimum": lambda row: estimate(row.regret, 1, "+.1%"),
    "ups / downs / reassigns": lambda row: " / ".join(
        f"{one.mean:.4g}" for one in (row.scale_ups, row.scale_downs, row.reassignments)
    ),
    "moves": lambda row: estimate(row.moved_partitions, 1, ".4g"),
}
RELATIVE: Final[Columns] = {
    "policy": lambda row: f"`{row.policy}`",
    "in SLA, points": lambda row: against(row.in_sla_difference, 100, ".3f"),
    "p99.9, ms": lambda row: against(row.p999_difference_s, 1e3, ",.0f"),
    "r-m": lambda row: against(row.replica_minutes_difference, 1, ".2f"),
    "on the front": _on_front,
}


def sweep_page(sweep: Sweep, rows: Sequence[SweepFigures], origins: Iterable[Origin]) -> str:
    """Return the page of a sweep, its picture beside it in a file of its name."""
    drawn = f"\n![{sweep.title}]({sweep.name}.svg)\n" if rows else ""
    return f"# {sweep.title}\n\n{sweep.asks}\n\n{sweep_tables(sweep, rows, origins)}{drawn}"


def sweep_tables(sweep: Sweep, rows: Sequence[SweepFigures], origins: Iterable[Origin]) -> str:
    """Return a table for each scenario, each cell: in SLA %, replica-minutes (× packing)."""
    parts = []
    for scenario, some in groupby(rows, key=lambda row: row.scenario):
        found = list(some)
        cells = {(row.point, _line(row)): _sweep_cell(row) for row in found}
        lines = list(dict.fromkeys(_line(row) for row in found))
        places = list(dict.fromkeys(row.point for row in found))
        body = [(place, *(cells.get((place, one), "–") for one in lines)) for place in places]
        parts += [
            f"**{scenario}** ({_chance(found)}): in SLA, r-m (× packing)",
            "",
            table((sweep.axis, *lines), body),
        ]
    return "\n".join(parts) + "\n" + sources(origins)


def _line(row: SweepFigures) -> str:
    """Return the name of the line that a row belongs to."""
    return f"{row.policy}, {row.series}" if row.series else row.policy


def _sweep_cell(row: SweepFigures) -> str:
    return f"{in_sla(row.in_sla)}, {row.replica_minutes.mean:.1f} ({row.packing_ratio.mean:.2f} ×)"


def draw_sweep(sweep: Sweep, rows: Sequence[SweepFigures], path: Path) -> None:
    """Write an SVG file. Bars are 95 % intervals."""
    panels = [list(some) for _, some in groupby(rows, key=lambda row: row.scenario)]
    with picture(path, 9.2, 3.0 * len(panels) + 0.6) as figure:
        grid = figure.subplots(len(panels), 2, squeeze=False)
        for (shares, costs), panel in zip(grid, panels, strict=True):
            _sweep_panel(shares, costs, sweep, panel)
        handles, labels = grid[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=8)


def _late(share_in_time: float) -> float:
    """Return the share of late events, as it can be drawn."""
    return max(1 - share_in_time, NONE_LATE)


def _sweep_panel(shares: Any, costs: Any, sweep: Sweep, rows: Sequence[SweepFigures]) -> None:
    """Draw one scenario: places stand evenly, whatever their distance, so that words fit among them."""
    places = list(dict.fromkeys(row.point for row in rows))
    for name, color in zip(dict.fromkeys(map(_line, rows)), cycle(COLORS), strict=False):
        found = [row for row in rows if _line(row) == name]
        x = [places.index(row.point) for row in found]
        style = {"color": color, "marker": "o", "markersize": 3, "linewidth": 1, "label": name}
        shares.plot(x, [_late(row.in_sla.mean) for row in found], **style)
        low, high = [_late(row.in_sla.high) for row in found], [_late(row.in_sla.low) for row in found]
        shares.vlines(x, low, high, color=color, linewidth=2, alpha=0.5)
        costs.plot(x, [row.packing_ratio.mean for row in found], **style)
    shares.set_yscale("log")
    shares.set_title(f"{rows[0].scenario}: share of late events ({NONE_LATE:.0e}: none)", loc="left")
    costs.set_title("replica-minutes, × per-second packing", loc="left")
    for axes in (shares, costs):
        axes.set_xticks(range(len(places)), [place.replace(", ", ",\n") for place in places])
        axes.set_xlabel(sweep.axis)


def _chance(rows: Sequence[SweepFigures]) -> str:
    """Say how many runs stand behind a cell."""
    seeds = max(row.seeds for row in rows)
    return "one run each: nothing is left to chance" if seeds == 1 else f"{seeds} seeds where anything is random"


def committed_sweep(name: str) -> str:
    """Return the tables of one sweep, as far as it is committed."""
    found = [row for row in load("sweeps", SweepFigures) if row.result.sweep == name]
    return sweep_tables(SWEEPS[name], [row.result for row in found], (row.origin for row in found))


EXPERIMENT_TABLES: Final[dict[str, Callable[[], str]]] = {
    f"sweep-{name}": partial(committed_sweep, name) for name in SWEEPS
}
