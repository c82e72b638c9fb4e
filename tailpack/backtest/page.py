"""Write a backtest as one HTML page that loads nothing from the network. Charts are SVG, without a script."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from bench.backtest.backtest import Backtest, Block
from report.page.page import PAGE_FOLDER, join_units, kind

WIDTH, HEIGHT, LEFT, BOTTOM = 960, 190, 56, 22
"""Size of a chart and of its margins, in units of its view box."""
COLOURS: Final = ("muted", "b", "c", "a", "good", "bad")
PACKAGES: Final = ("tailpack.backtest", "report.page")


class Texts(NamedTuple):
    """Texts that the terminal shows too."""

    title: str
    conditions: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str]


def clock(second: int) -> str:
    """Return a time since the start of the trace as text: "2 d 09:15:00"."""
    days, rest = divmod(second, 86_400)
    return (f"{days} d " if days else "") + f"{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}"


def html(result: Backtest, texts: Texts) -> str:
    """Return the page as HTML."""
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(name, "") for name in PACKAGES]), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters.update(join_units=join_units, kind=kind)
    blocks, names = result.blocks, [line.name for line in result.lines]
    lines = list(zip(names, COLOURS * len(names), strict=False))
    late = [[100 * (1 - one) for one in block.in_time] for block in blocks]
    charts: list[tuple[str, Sequence[tuple[str, str]], Sequence[Sequence[float]]]] = [
        ("Events/s", [("events/s", "a")], [[block.events_per_s] for block in blocks]),
        ("Mean replicas", lines, [block.replicas for block in blocks]),
        ("Late events, %", lines, late),
    ]
    end_s = blocks[-1].end_s if blocks else 0
    return environment.get_template("page.html.jinja").render(
        texts=texts,
        names=names,
        style="".join((PAGE_FOLDER / f"{name}.css").read_text(encoding="utf-8") for name in ("base", "page")),
        charts=[(title, keys, *_paths(blocks, values, len(keys))) for title, keys, values in charts if blocks],
        blocks=[
            [clock(block.begin_s), f"{block.events_per_s:,.0f}"]
            + [f"{count:.2f} · {bad:.3g} %" for count, bad in zip(block.replicas, own, strict=True)]
            for block, own in zip(blocks, late, strict=True)
        ],
        ticks=[(LEFT + sixth / 6 * (WIDTH - LEFT - 8), clock(end_s * sixth // 6)) for sixth in range(6)],
        size=(WIDTH, HEIGHT, LEFT, BOTTOM),
    )


def _paths(blocks: Sequence[Block], values: Sequence[Sequence[float]], lines: int) -> tuple[str, list[str]]:
    """Return the highest value as text, and a path for each line; blocks that follow each other are joined."""
    end_s, highest = blocks[-1].end_s, max(max(row) for row in values) or 1.0
    paths = []
    for line in range(lines):
        path, last_s = "", -1
        for block, row in zip(blocks, values, strict=True):
            left, right = (LEFT + at_s / end_s * (WIDTH - LEFT - 8) for at_s in (block.begin_s, block.end_s))
            y = 8 + (1 - row[line] / highest) * (HEIGHT - BOTTOM - 16)
            path += f"{'L' if block.begin_s == last_s else 'M'}{left:.1f} {y:.1f}H{right:.1f}"
            last_s = block.end_s
        paths.append(path)
    return f"{highest:,.3g}" if highest < 1000 else f"{highest:,.0f}", paths
