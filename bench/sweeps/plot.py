"""A sweep as a picture: late events and cost along the axis, a line for each policy."""

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from bench.comparison.plot import COLORS, NONE_LATE, late
from bench.sweeps.page import line
from bench.sweeps.sweep import Sweep, SweepFigures


def draw(sweep: Sweep, rows: Sequence[SweepFigures], path: Path) -> None:
    """Write an SVG file; equal rows make equal bytes. Bars are 95 % intervals."""
    import matplotlib as mpl  # noqa: PLC0415  half a second, and only here
    from matplotlib.figure import Figure  # noqa: PLC0415

    panels = [list(some) for _, some in groupby(rows, key=lambda row: row.scenario)]
    with mpl.rc_context({"svg.hashsalt": "tailpack", "svg.fonttype": "none", "font.size": 9}):
        figure = Figure(figsize=(9.2, 3.0 * len(panels) + 0.6), layout="constrained")
        grid = figure.subplots(len(panels), 2, squeeze=False)
        for (shares, costs), panel in zip(grid, panels, strict=True):
            _panel(shares, costs, sweep, panel)
        handles, labels = grid[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=8)
        figure.savefig(path, format="svg", metadata={"Date": None})


def _panel(shares: Any, costs: Any, sweep: Sweep, rows: Sequence[SweepFigures]) -> None:
    """Draw one scenario: places stand evenly, whatever their distance, so that words fit among them."""
    places = list(dict.fromkeys(row.point for row in rows))
    for number, name in enumerate(dict.fromkeys(map(line, rows))):
        found = [row for row in rows if line(row) == name]
        x = [places.index(row.point) for row in found]
        color = COLORS[number % len(COLORS)]
        style = {"color": color, "marker": "o", "markersize": 3, "linewidth": 1, "label": name}
        shares.plot(x, [late(row.in_sla.mean) for row in found], **style)
        low, high = [late(row.in_sla.high) for row in found], [late(row.in_sla.low) for row in found]
        shares.vlines(x, low, high, color=color, linewidth=2, alpha=0.5)
        costs.plot(x, [row.bound_ratio.mean for row in found], **style)
    shares.set_yscale("log")
    shares.set_title(f"{rows[0].scenario}: share of late events ({NONE_LATE:.0e}: none)", loc="left")
    costs.set_title("replica-minutes, × bound", loc="left")
    for axes in (shares, costs):
        axes.set_xticks(range(len(places)), [place.replace(", ", ",\n") for place in places])
        axes.set_xlabel(sweep.axis)
        axes.grid(alpha=0.3)
        for edge in ("top", "right"):
            axes.spines[edge].set_visible(False)
