"""Experiments in Markdown: every policy of a comparison, a sweep along its axis, the goals of tail-aware."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import groupby
from typing import Final

from bench.experiments.compare import PolicyFigures
from bench.experiments.goals import GOALS, POLICY, Goal
from bench.experiments.sweeps import SWEEPS, Sweep, SweepFigures
from bench.results import ComparisonRow, Origin, SweepRow, TargetRow, load, sources, table
from report.run_info import FORESEEING
from report.statistics import Against, Interval

ABSOLUTE = (
    "policy",
    "in SLA %",
    "p99, ms",
    "p99.9, ms",
    "max, ms",
    "r-m",
    "× bound",
    "ups / downs / reassigns",
    "moves",
)
RELATIVE = ("policy", "in SLA, points", "p99.9, ms", "r-m", "on the front")


def page(rows: Sequence[PolicyFigures], origins: Iterable[Origin], *, heading: str = "##") -> str:
    """Return a section for each scenario; where the figures come from stands once, at the end."""
    sections = [
        _section(list(some), heading) for _, some in groupby(rows, key=lambda row: (row.scenario, row.settings))
    ]
    return "\n".join(sections) + "\n" + sources(origins)


def estimate(value: Interval | Against | None, times: float, how: str) -> str:
    """Return mean (low–high) in another unit; the mean alone where all runs were equal; – where there is none."""
    if value is None:
        return "–"
    mean = format(times * value.mean, how)
    low, high = format(times * value.low, how), format(times * value.high, how)
    return mean if low == mean == high else f"{mean} ({low} to {high})"


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


def _section(rows: Sequence[PolicyFigures], heading: str) -> str:
    reference = rows[0].reference
    others = [row for row in rows if row.policy != reference]
    lines = [
        f"{heading} {rows[0].scenario}",
        "",
        _what_is_random(rows[0]),
        "",
        table(ABSOLUTE, map(_absolute, rows), ()),
    ]
    if others and any(row.policy == reference for row in rows):
        lines += [f"Minus `{reference}`, on the same seeds:", "", table(RELATIVE, map(_relative, rows), ())]
    return "\n".join(lines)


def _what_is_random(row: PolicyFigures) -> str:
    settings = f" Set over the scenario: {', '.join(row.settings)}." if row.settings else ""
    if not row.random:
        return f"{row.events:,.0f} events. Nothing is left to chance here: one run says all.{settings}"
    what = ", ".join(row.random)
    spread = f"{row.seeds} seeds; means with 95 % intervals" if row.seeds > 1 else "one seed: no interval is known"
    return f"{row.events:,.0f} events. At random: {what}; {spread}.{settings}"


def _absolute(row: PolicyFigures) -> tuple[str, ...]:
    lost = f", {row.lost} lost" if row.lost else ""
    actions = (row.scale_ups, row.scale_downs, row.reassignments)
    return (
        f"`{row.policy}`",
        estimate(row.in_sla, 100, ".3f") + lost,
        *(estimate(value, 1e3, ",.0f") for value in (row.p99_s, row.p999_s, row.max_s)),
        estimate(row.replica_minutes, 1, ".2f"),
        estimate(row.bound_ratio, 1, ".3f"),
        " / ".join(f"{value.mean:.4g}" for value in actions),
        estimate(row.moved_partitions, 1, ".4g"),
    )


def _relative(row: PolicyFigures) -> tuple[str, ...]:
    return (
        f"`{row.policy}`",
        against(row.in_sla_difference, 100, ".3f"),
        against(row.p999_difference_s, 1e3, ",.0f"),
        against(row.replica_minutes_difference, 1, ".2f"),
        "knows the future" if row.policy in FORESEEING else "yes" if row.on_front else "no",
    )


def comparison() -> str:
    """Return every policy in every scenario, as far as it is committed."""
    found = load(ComparisonRow)
    return page(found, (row.origin for row in found), heading="###")


def sweep_page(sweep: Sweep, rows: Sequence[SweepFigures], origins: Iterable[Origin], *, picture: str = "") -> str:
    """Return the page of a sweep. picture: address of its drawing; none: without."""
    parts = [f"# {sweep.title}", "", sweep.asks, "", sweep_tables(sweep, rows, origins)]
    return "\n".join(parts) + (f"\n![{sweep.title}]({picture})\n" if picture else "")


def sweep_tables(sweep: Sweep, rows: Sequence[SweepFigures], origins: Iterable[Origin]) -> str:
    """Return a table for each scenario, each cell: in SLA %, replica-minutes (× bound)."""
    parts = []
    for scenario, some in groupby(rows, key=lambda row: row.scenario):
        found = list(some)
        cells = {(row.point, line(row)): _sweep_cell(row) for row in found}
        lines = list(dict.fromkeys(line(row) for row in found))
        places = list(dict.fromkeys(row.point for row in found))
        body = [(place, *(cells.get((place, one), "–") for one in lines)) for place in places]
        parts += [
            f"**{scenario}** ({_chance(found)}): in SLA %, r-m (× bound)",
            "",
            table((sweep.axis, *lines), body, ()),
        ]
    return "\n".join(parts) + "\n" + sources(origins)


def line(row: SweepFigures) -> str:
    """Return the name of the line that a row belongs to."""
    return f"{row.policy}, {row.series}" if row.series else row.policy


def _sweep_cell(row: SweepFigures) -> str:
    return f"{estimate(row.in_sla, 100, '.2f')}, {row.replica_minutes.mean:.1f} ({row.bound_ratio.mean:.2f} ×)"


def _chance(rows: Sequence[SweepFigures]) -> str:
    """Say how many runs stand behind a cell."""
    seeds = max(row.seeds for row in rows)
    return "one run each: nothing is left to chance" if seeds == 1 else f"{seeds} seeds where anything is random"


def committed_sweep(name: str) -> str:
    """Return the tables of one sweep, as far as it is committed."""
    found = [row for row in load(SweepRow) if row.sweep == name]
    return sweep_tables(SWEEPS[name], found, (row.origin for row in found))


def targets() -> str:
    """Return each goal, what was reached, and the cheapest other policy that keeps as many events in time."""
    found = load(TargetRow)
    rows = [cells for goal in GOALS if (cells := _goal_cells(goal, _of(goal, found)))]
    header = ("scenario", "goal", "in SLA %", "r-m (× bound)", "reached", "cheapest other that keeps that promise")
    return table(header, rows, (row.origin for row in found))


def _of(goal: Goal, rows: Sequence[TargetRow]) -> list[TargetRow]:
    return [row for row in rows if (row.scenario, row.settings) == (goal.world.scenario, goal.world.settings)]


def _goal_cells(goal: Goal, rows: Sequence[PolicyFigures]) -> tuple[str, ...] | None:
    ours = next((row for row in rows if row.policy == POLICY), None)
    if ours is None:
        return None
    reached = goal.reached(ours.in_sla, ours.bound_ratio, ours.replica_minutes)
    keeping = [row for row in rows if row.policy != POLICY and row.in_sla.mean >= goal.in_sla]
    other = min(keeping, key=lambda row: row.replica_minutes.mean, default=None)
    return (
        ", ".join((goal.world.scenario, *goal.world.settings)) + (f" ({ours.seeds} seeds)" if ours.seeds > 1 else ""),
        str(goal),
        _share(ours),
        _cost(ours),
        "yes" if reached else "**no**",
        f"{other.policy}: {_cost(other)}" if other else "none",
    )


def _share(row: PolicyFigures) -> str:
    spread = f" [{100 * row.in_sla.low:.3f}, {100 * row.in_sla.high:.3f}]" if row.seeds > 1 else ""
    return f"{100 * row.in_sla.mean:.3f}{spread}"


def _cost(row: PolicyFigures) -> str:
    spread = f" [{row.bound_ratio.low:.3f}, {row.bound_ratio.high:.3f}]" if row.seeds > 1 else ""
    return f"{row.replica_minutes.mean:.2f} ({row.bound_ratio.mean:.3f}{spread})"


EXPERIMENT_TABLES: Final[dict[str, Callable[[], str]]] = {
    "comparison": comparison,
    **{f"sweep-{name}": partial(committed_sweep, name) for name in SWEEPS},
    "targets": targets,
}
