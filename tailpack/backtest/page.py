"""Write a backtest as one HTML page that loads nothing from the network. Charts are SVG, without a script."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from report.page.page import PAGE_FOLDER, join_units, kind

WIDTH, HEIGHT, LEFT, BOTTOM = 960, 190, 56, 22
"""Size of a chart and of its margins, in units of its view box."""
COLOURS: Final = ("muted", "b", "c", "a", "good", "bad")
PACKAGES: Final = ("tailpack.backtest", "report.page")


@dataclass(frozen=True, kw_only=True)
class Page:
    """Content of the page. Lines are contenders; blocks are successive times of the trace."""

    title: str
    conditions: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str]
    names: Sequence[str]
    """Names of the lines."""
    spans: Sequence[tuple[int, int]]
    """Begin and end of each block, seconds from the start of the trace."""
    clock: Callable[[int], str]
    """Returns such a time as text."""
    events_per_s: Sequence[float]
    """By block."""
    replicas: Sequence[Sequence[float]]
    """By block and line."""
    late: Sequence[Sequence[float]]
    """Late events, %, by block and line."""


def html(page: Page) -> str:
    """Return the page as HTML."""
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(name, "") for name in PACKAGES]), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters.update(join_units=join_units, kind=kind)
    end_s = page.spans[-1][1] if page.spans else 0
    lines = list(zip(page.names, COLOURS * len(page.names), strict=False))
    charts = [
        ("Events/s", [("events/s", "a")], [[rate] for rate in page.events_per_s]),
        ("Mean replicas", lines, page.replicas),
        ("Late events, %", lines, page.late),
    ]
    return environment.get_template("page.html.jinja").render(
        page=page,
        style=(PAGE_FOLDER / "page.css").read_text(encoding="utf-8"),
        charts=[(title, keys, *_paths(page, values, len(keys))) for title, keys, values in charts if page.spans],
        blocks=[
            [page.clock(begin_s), f"{rate:,.0f}", *(f"{n:.2f} · {bad:.3g} %" for n, bad in zip(*both, strict=True))]
            for (begin_s, _), rate, *both in zip(page.spans, page.events_per_s, page.replicas, page.late, strict=True)
        ],
        ticks=[(LEFT + sixth / 6 * (WIDTH - LEFT - 8), page.clock(end_s * sixth // 6)) for sixth in range(6)],
        size=(WIDTH, HEIGHT, LEFT, BOTTOM),
    )


def _paths(page: Page, values: Sequence[Sequence[float]], lines: int) -> tuple[str, list[str]]:
    """Return the highest value as text, and a path for each line; blocks that follow each other are joined."""
    end_s, highest = page.spans[-1][1], max(max(row) for row in values) or 1.0
    paths = []
    for line in range(lines):
        path, last_s = "", -1
        for (begin_s, until_s), row in zip(page.spans, values, strict=True):
            left, right = (LEFT + at_s / end_s * (WIDTH - LEFT - 8) for at_s in (begin_s, until_s))
            y = 8 + (1 - row[line] / highest) * (HEIGHT - BOTTOM - 16)
            path += f"{'L' if begin_s == last_s else 'M'}{left:.1f} {y:.1f}H{right:.1f}"
            last_s = until_s
        paths.append(path)
    return f"{highest:,.3g}" if highest < 1000 else f"{highest:,.0f}", paths
