"""The picture of the comparison: what moved and unmoved partitions suffer, by runtime and heartbeat interval."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from bench.handover.outcomes import HandoverResult
from bench.picture import COLORS, picture

ORDER: Final = ("incremental", "eager", "cooperative-sticky", "kip848", "share", "faust")
LATENCY_TARGET_S: Final = 0.5
MOVED, UNMOVED = COLORS[:2]


def draw(rows: Sequence[HandoverResult], path: Path) -> None:
    """Write an SVG file. Rows without a figure are left out."""
    known = sorted(rows, key=lambda row: (ORDER.index(row.runtime), -row.heartbeat_s))
    labels = [f"{row.runtime}, {row.heartbeat_s:g} s" for row in known]
    with picture(path, 8, 0.9 + 0.3 * len(known)) as figure:
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
        axes.grid(visible=False, axis="y")
        keys = ((MOVED, "partitions that move"), (UNMOVED, "all others"))
        handles = [axes.plot([], [], "o-", color=color, label=label)[0] for color, label in keys]
        axes.legend(handles=handles, loc="lower right")


def _span(axes: Any, height: float, p99_s: float | None, max_s: float | None, color: str) -> None:
    """Draw one line from the 99th percentile to the worst event."""
    if p99_s is None or max_s is None:
        return
    axes.plot([p99_s, max_s], [height, height], color=color, linewidth=1.2)
    axes.plot([p99_s], [height], "o", color=color, markersize=5)
    axes.plot([max_s], [height], "o", color=color, markersize=5, markerfacecolor="white")
