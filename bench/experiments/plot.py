"""Pictures of experiments: late events against replica-minutes, and both along the axis of a sweep."""

from collections.abc import Mapping, Sequence
from itertools import cycle, groupby
from math import ceil
from pathlib import Path
from typing import Any, Final

from bench.experiments.compare import PolicyFigures
from bench.experiments.sweeps import Sweep, SweepFigures
from bench.experiments.tables import line
from bench.picture import COLORS, picture

NONE_LATE: Final = 1e-6
"""Where a share of 0 is drawn on the logarithmic axis, on which every nine has its room."""


def draw(rows: Sequence[PolicyFigures], path: Path) -> None:
    """Write an SVG file, two worlds side by side. Bars are 95 % intervals, full points are on the front."""
    panels = [list(some) for _, some in groupby(rows, key=lambda row: (row.scenario, row.settings))]
    colors = dict(zip(dict.fromkeys(row.policy for row in rows), cycle(COLORS), strict=False))
    columns = min(2, len(panels))
    lines = ceil(len(panels) / columns)
    with picture(path, 4.6 * columns, 3.0 * lines + 0.6) as figure:
        grid = figure.subplots(lines, columns, squeeze=False).ravel()
        for axes, panel in zip(grid, panels, strict=False):
            _panel(axes, panel, colors)
        for unused in grid[len(panels) :]:
            unused.set_visible(False)
        handles = [grid[0].plot([], [], "o", color=color, label=name)[0] for name, color in colors.items()]
        figure.legend(handles=handles, loc="outside lower center", ncols=3 * columns, fontsize=8)


def late(share: float) -> float:
    """Return the share of late events for a share in SLA, as it can be drawn."""
    return max(1 - share, NONE_LATE)


def _panel(axes: Any, rows: Sequence[PolicyFigures], colors: Mapping[str, str]) -> None:
    front = sorted((row for row in rows if row.on_front), key=lambda row: row.replica_minutes.mean)
    costs, shares = [row.replica_minutes.mean for row in front], [late(row.in_sla.mean) for row in front]
    axes.step(costs, shares, where="post", color="#999999", linewidth=0.8, zorder=1)
    for row in rows:
        cost, share = row.replica_minutes, row.in_sla
        axes.errorbar(
            [cost.mean],
            [late(share.mean)],
            xerr=[[cost.mean - cost.low], [cost.high - cost.mean]],
            yerr=[[late(share.mean) - late(share.high)], [late(share.low) - late(share.mean)]],
            fmt="o",
            markersize=6,
            color=colors[row.policy],
            markerfacecolor=colors[row.policy] if row.on_front else "white",
        )
    bound = sum(row.replica_minutes.mean / row.bound_ratio.mean for row in rows) / len(rows)
    axes.axvline(bound, color="#999999", linestyle=":", linewidth=1, zorder=0)
    axes.set(yscale="log", ylim=(NONE_LATE / 2, 2), xlabel="replica-minutes; dotted: the bound")
    axes.set_ylabel(f"share of late events ({NONE_LATE:.0e}: none)")
    axes.set_title(rows[0].scenario, loc="left", fontweight="bold")


def draw_sweep(sweep: Sweep, rows: Sequence[SweepFigures], path: Path) -> None:
    """Write an SVG file. Bars are 95 % intervals."""
    panels = [list(some) for _, some in groupby(rows, key=lambda row: row.scenario)]
    with picture(path, 9.2, 3.0 * len(panels) + 0.6) as figure:
        grid = figure.subplots(len(panels), 2, squeeze=False)
        for (shares, costs), panel in zip(grid, panels, strict=True):
            _sweep_panel(shares, costs, sweep, panel)
        handles, labels = grid[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=8)


def _sweep_panel(shares: Any, costs: Any, sweep: Sweep, rows: Sequence[SweepFigures]) -> None:
    """Draw one scenario: places stand evenly, whatever their distance, so that words fit among them."""
    places = list(dict.fromkeys(row.point for row in rows))
    for name, color in zip(dict.fromkeys(map(line, rows)), cycle(COLORS), strict=False):
        found = [row for row in rows if line(row) == name]
        x = [places.index(row.point) for row in found]
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
