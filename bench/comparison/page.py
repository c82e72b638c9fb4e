"""A comparison in Markdown: per scenario what every policy came to, and the differences that count."""

from collections.abc import Iterable, Sequence
from itertools import groupby

from bench.comparison.rows import PolicyFigures
from bench.figures import Origin
from bench.markdown import table
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


def sources(origins: Iterable[Origin]) -> str:
    """Return one line for each command that made the figures."""
    return "".join(
        sorted({f"`{one.command}`, commit {one.commit}, {one.machine}, {one.measured_on}  \n" for one in origins})
    )


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
