"""A sweep in Markdown: a row for each point of the axis, a column for each line."""

from collections.abc import Iterable, Sequence
from itertools import groupby

from bench.comparison.page import estimate, sources
from bench.figures import Origin
from bench.markdown import table
from bench.sweeps.sweep import Sweep, SweepFigures


def page(sweep: Sweep, rows: Sequence[SweepFigures], origins: Iterable[Origin], *, picture: str = "") -> str:
    """Return the page of a sweep. picture: address of its drawing; none: without."""
    parts = [f"# {sweep.title}", "", sweep.asks, "", tables(sweep, rows, origins)]
    return "\n".join(parts) + (f"\n![{sweep.title}]({picture})\n" if picture else "")


def tables(sweep: Sweep, rows: Sequence[SweepFigures], origins: Iterable[Origin]) -> str:
    """Return a table for each scenario, each cell: in SLA %, replica-minutes (× bound)."""
    parts = []
    for scenario, some in groupby(rows, key=lambda row: row.scenario):
        found = list(some)
        cells = {(row.point, line(row)): _cell(row) for row in found}
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


def _cell(row: SweepFigures) -> str:
    return f"{estimate(row.in_sla, 100, '.2f')}, {row.replica_minutes.mean:.1f} ({row.bound_ratio.mean:.2f} ×)"


def _chance(rows: Sequence[SweepFigures]) -> str:
    """Say how many runs stand behind a cell."""
    seeds = max(row.seeds for row in rows)
    return "one run each: nothing is left to chance" if seeds == 1 else f"{seeds} seeds where anything is random"
