"""The study of groupings as tables and a picture; made of the committed figures."""

from collections.abc import Callable
from pathlib import Path
from statistics import fmean
from typing import Any, Final

import numpy as np

from bench.markdown import in_columns, table
from bench.matrix_table import interval
from bench.picture import COLORS, picture
from bench.results import load
from contracts.events import Grouping
from report.measures import bootstrap_interval
from report.wording import share
from studies.grouping.claims import GroupingStudy
from studies.grouping.compare import CAPACITY, CHANGE, GROUPINGS, POLICIES, SKEW, GroupingFigures, Packed, at

NAME: Final = "grouping"


COLUMNS: Final[dict[str, Callable[[GroupingFigures], str]]] = {
    "grouping": lambda one: f"`{one.grouping}`",
    "imbalance": lambda one: interval(bootstrap_interval(one.imbalance), 1, ".4f"),
    "memory": lambda one: f"{fmean(one.memory):.3f}",
    "partials": lambda one: f"{one.partials:.3f}",
    "in W": lambda one: share(one.in_sla),
    "p50, s": lambda one: f"{one.p50_s:.3g}",
    "p99, s": lambda one: f"{one.p99_s:.3g}",
    "p99.9, s": lambda one: f"{one.p999_s:.3g}",
}


def kept() -> Any:
    """Return the committed study."""
    return load(NAME, GroupingStudy)[0]


def _rows_of(study: str) -> str:
    found = kept()
    return in_columns(COLUMNS, [row for row in found.result.rows if row.study == study], [found.origin])


def _claims_table() -> str:
    found = kept()
    rows = [(one.claim, one.published, one.ours, one.verdict) for one in found.result.claims]
    return table(("the paper", "it says", "seen here", "verdict"), rows, [found.origin])


def _speeds_table() -> str:
    found = kept()
    rows = [(f"`{one.grouping}`", f"{one.bulk_per_s / 1e6:.1f}", f"{one.single_us:.1f}") for one in found.result.speeds]
    return table(("grouping", "million choices/s, compiled", "µs for one, interpreted"), rows, [found.origin])


def _packed_table() -> str:
    found = kept()
    worlds: dict[tuple[float, Grouping], list[Packed]] = {}
    for one in found.result.packed:
        worlds.setdefault((one.skew, one.grouping), []).append(one)
    header = ["skew z", "grouping"]
    for policy in POLICIES:
        header += [f"`{policy}`: in W", "r-m"]
    rows = [
        [f"{skew:g}", f"`{grouping}`"]
        + [cell for one in some for cell in (share(one.in_sla.mean), f"{one.replica_minutes.mean:.2f}")]
        for (skew, grouping), some in worlds.items()
    ]
    return table(header, rows, [found.origin])


GROUPING_TABLES: Final[dict[str, Callable[[], str]]] = {
    "grouping-capacities": lambda: _rows_of(CAPACITY),
    "grouping-change": lambda: _rows_of(CHANGE),
    "grouping-claims": _claims_table,
    "grouping-packed": _packed_table,
    "grouping-speed": _speeds_table,
}
SHOWN_WORKERS: Final = 50
ZERO: Final = 1e-4
"""Where a smaller imbalance is drawn, on the logarithmic axis."""


def draw_groupings(path: Path) -> None:
    """Write an SVG file: imbalance and memory over skew, and imbalance over time where capacities change."""
    rows = kept().result.rows
    with picture(path, 8, 5.6) as figure:
        (imbalance, memory), (apart, change) = figure.subplots(2, 2)
        for number, one in enumerate(GROUPINGS):
            color, some = COLORS[number], [row for row in at(rows, SKEW, one) if row.workers == SHOWN_WORKERS]
            skews = [row.skew for row in some]
            imbalance.plot(skews, [max(fmean(row.imbalance), ZERO) for row in some], ".-", color=color, label=one)
            memory.plot(skews, [fmean(row.memory) for row in some], ".-", color=color)
            (unequal,) = at(rows, CAPACITY, one)
            point = fmean(unequal.memory), max(fmean(unequal.imbalance), ZERO)
            apart.plot(*([one] for one in point), "o", color=color)
            apart.annotate(one.value, point, xytext=(4, 3), textcoords="offset points", fontsize=7, color=color)
            (changing,) = at(rows, CHANGE, one)
            change.plot(np.linspace(0, changing.events / 1e6, len(changing.series)), changing.series, color=color)
        for axes, title, what, log in (
            (imbalance, f"imbalance, {SHOWN_WORKERS} workers", "skew z", True),
            (memory, f"memory, {SHOWN_WORKERS} workers", "skew z", False),
            (apart, "ten workers with capacities {3, 5}", "memory", True),
            (change, "capacities that change twice", "million events", False),
        ):
            axes.set_title(title, fontsize=9)
            axes.set_xlabel(what)
            axes.set_yscale("log" if log else "linear")
        apart.set_ylabel("imbalance")
        change.set_ylabel("imbalance")
        change.set_ylim(0, 1)
        figure.legend(loc="outside lower center", ncols=len(GROUPINGS))
