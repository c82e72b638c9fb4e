"""The picture of the comparison: what moved and unmoved partitions suffer, by runtime and heartbeat interval."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from bench.handover.outcomes import HandoverResult

ORDER: Final = ("incremental", "eager", "cooperative-sticky", "kip848", "share", "faust")
LATENCY_TARGET_S: Final = 0.5
MOVED: Final = "#0b6e99"
UNMOVED: Final = "#c2571a"


def draw(rows: Sequence["HandoverResult"], path: Path) -> None:
    """Write an SVG file; equal rows make equal bytes. Rows without a figure are left out."""
    import matplotlib as mpl  # noqa: PLC0415  half a second, and only here
    from matplotlib.figure import Figure  # noqa: PLC0415
    from matplotlib.lines import Line2D  # noqa: PLC0415

    known = sorted(rows, key=lambda row: (ORDER.index(row.runtime), -row.heartbeat_s))
    labels = [f"{row.runtime}, {row.heartbeat_s:g} s" for row in known]
    with mpl.rc_context({"svg.hashsalt": "tailpack", "svg.fonttype": "none", "font.size": 9}):
        figure = Figure(figsize=(8, 0.9 + 0.3 * len(known)), layout="constrained")
        axes = figure.subplots()
        for height, row in enumerate(known):
            figures = row.figures
            _span(axes, height - 0.12, figures.moved_p99_s, figures.moved_max_s, MOVED)
            _span(axes, height + 0.12, figures.unmoved_p99_s, figures.unmoved_max_s, UNMOVED)
        axes.axvline(LATENCY_TARGET_S, color="#888888", linestyle=":", linewidth=1)
        axes.set_xscale("log")
        axes.set_xlabel("latency of an event in the windows, s (log): p99 ●──○ worst; dotted: the target of 0.5 s")
        axes.set_yticks(range(len(known)), labels)
        axes.invert_yaxis()
        axes.grid(axis="x", alpha=0.3)
        for edge in ("top", "right"):
            axes.spines[edge].set_visible(False)
        handles = [
            Line2D([], [], color=color, marker="o", label=label)
            for color, label in ((MOVED, "partitions that move"), (UNMOVED, "all others"))
        ]
        axes.legend(handles=handles, loc="lower right", frameon=False)
        figure.savefig(path, format="svg", metadata={"Date": None})


def _span(axes: object, height: float, p99_s: float | None, max_s: float | None, color: str) -> None:
    """Draw one line from the 99th percentile to the worst event."""
    if p99_s is None or max_s is None:
        return
    axes.plot([p99_s, max_s], [height, height], color=color, linewidth=1.2)  # type: ignore[attr-defined]
    axes.plot([p99_s], [height], "o", color=color, markersize=5)  # type: ignore[attr-defined]
    axes.plot([max_s], [height], "o", color=color, markersize=5, markerfacecolor="white")  # type: ignore[attr-defined]
