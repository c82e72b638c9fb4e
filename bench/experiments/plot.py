"""Pictures of experiments: late events against replica-minutes, and both along the axis of a sweep."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from math import ceil
from pathlib import Path
from typing import Any, Final

from bench.experiments.compare import PolicyFigures
from bench.experiments.sweeps import Sweep, SweepFigures
from bench.experiments.tables import line

COLORS: Final = (
    "#0b6e99", "#c2571a", "#4c8c2b", "#7a4fa3", "#b8860b", "#c03a5b", "#2f9e8f", "#5b6770", "#a0522d", "#3d5a98",
)  # fmt: skip
COLUMNS: Final = 2
NONE_LATE: Final = 1e-6
"""Where a share of 0 is drawn on the logarithmic axis, on which every nine has its room."""


def draw(rows: Sequence[PolicyFigures], path: Path) -> None:
    """Write an SVG file; equal rows make equal bytes. Bars are 95 % intervals, full points are on the front."""
    import matplotlib as mpl  # noqa: PLC0415  half a second, and only here
    from matplotlib.figure import Figure  # noqa: PLC0415

    panels = [list(some) for _, some in groupby(rows, key=lambda row: (row.scenario, row.settings))]
    policies = dict.fromkeys(row.policy for row in rows)
    colors = {policy: COLORS[number % len(COLORS)] for number, policy in enumerate(policies)}
    columns = min(COLUMNS, len(panels))
    lines = ceil(len(panels) / columns)
    with mpl.rc_context({"svg.hashsalt": "tailpack", "svg.fonttype": "none", "font.size": 9}):
        figure = Figure(figsize=(4.6 * columns, 3.0 * lines + 0.6), layout="constrained")
        grid = figure.subplots(lines, columns, squeeze=False).ravel()
        for axes, panel in zip(grid, panels, strict=False):
            _panel(axes, panel, colors)
        for unused in grid[len(panels) :]:
            unused.set_visible(False)
        figure.legend(handles=_keys(colors), loc="outside lower center", ncols=3 * columns, frameon=False, fontsize=8)
        figure.savefig(path, format="svg", metadata={"Date": None})


def late(share: float) -> float:
    """Return the share of late events for a share in SLA, as it can be drawn."""
    return max(1 - share, NONE_LATE)


def _panel(axes: Any, rows: Sequence[PolicyFigures], colors: Mapping[str, str]) -> None:
    front = sorted((row for row in rows if row.on_front), key=lambda row: row.replica_minutes.mean)
    path = [(row.replica_minutes.mean, late(row.in_sla.mean)) for row in front]
    axes.step([x for x, _ in path], [y for _, y in path], where="post", color="#999999", linewidth=0.8, zorder=1)
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
    axes.set_yscale("log")
    axes.set_ylim(NONE_LATE / 2, 2)
    axes.set_title(rows[0].scenario, loc="left", fontweight="bold")
    axes.set_xlabel("replica-minutes; dotted: the bound")
    axes.set_ylabel(f"share of late events ({NONE_LATE:.0e}: none)")
    axes.grid(alpha=0.3)
    for edge in ("top", "right"):
        axes.spines[edge].set_visible(False)


def _keys(colors: Mapping[str, str]) -> list[Any]:
    from matplotlib.lines import Line2D  # noqa: PLC0415

    return [Line2D([], [], color=color, marker="o", linestyle="", label=name) for name, color in colors.items()]


def draw_sweep(sweep: Sweep, rows: Sequence[SweepFigures], path: Path) -> None:
    """Write an SVG file; equal rows make equal bytes. Bars are 95 % intervals."""
    import matplotlib as mpl  # noqa: PLC0415  half a second, and only here
    from matplotlib.figure import Figure  # noqa: PLC0415

    panels = [list(some) for _, some in groupby(rows, key=lambda row: row.scenario)]
    with mpl.rc_context({"svg.hashsalt": "tailpack", "svg.fonttype": "none", "font.size": 9}):
        figure = Figure(figsize=(9.2, 3.0 * len(panels) + 0.6), layout="constrained")
        grid = figure.subplots(len(panels), 2, squeeze=False)
        for (shares, costs), panel in zip(grid, panels, strict=True):
            _sweep_panel(shares, costs, sweep, panel)
        handles, labels = grid[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=8)
        figure.savefig(path, format="svg", metadata={"Date": None})


def _sweep_panel(shares: Any, costs: Any, sweep: Sweep, rows: Sequence[SweepFigures]) -> None:
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
