"""The picture of the comparison: load that moves against consumers that it takes."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from studies.packing.contestants import EXISTING, KEEP_IN_PLACE, MODIFIED
from studies.packing.result import Point, Study

EXISTING_COLOR: Final = "#888888"
MODIFIED_COLOR: Final = "#c2571a"
OURS_COLOR: Final = "#0b6e99"


def draw(studies: Sequence[Study], path: Path) -> None:
    """Write an SVG file with one field for each study; equal studies make equal bytes."""
    import matplotlib as mpl  # noqa: PLC0415  half a second, and only here
    from matplotlib.figure import Figure  # noqa: PLC0415

    with mpl.rc_context({"svg.hashsalt": "tailpack", "svg.fonttype": "none", "font.size": 9}):
        figure = Figure(figsize=(4.6 * len(studies), 4.2), layout="constrained")
        fields = figure.subplots(1, len(studies), squeeze=False)[0]
        for axes, study in zip(fields, studies, strict=True):
            _field(axes, study)
        fields[0].set_ylabel("Rscore: capacities that move in an iteration")
        handles, labels = fields[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
        figure.savefig(path, format="svg", metadata={"Date": None})


def _field(axes: Any, study: Study) -> None:
    by_name = {point.packer: point for point in study.points}
    for names, color, label in (
        (EXISTING, EXISTING_COLOR, "any fit"),
        (MODIFIED, MODIFIED_COLOR, "modified any fit"),
    ):
        found = [by_name[name] for name in names]
        axes.plot(_cbs(found), _rscores(found), "o", color=color, markersize=4, label=label)
        for together in _neighbours(found):
            axes.annotate(
                ", ".join(point.packer for point in together),
                (100 * together[0].cbs.mean, together[0].rscore.mean),
                xytext=(4, 3),
                textcoords="offset points",
                fontsize=7,
                color=color,
            )
    ours = sorted(
        (point for point in study.points if point.packer.startswith(KEEP_IN_PLACE)), key=lambda one: one.cbs.mean
    )
    forced = [point.forced_rscore.mean for point in ours]
    axes.plot(_cbs(ours), _rscores(ours), "o-", color=OURS_COLOR, markersize=4, label="keep in place")
    axes.plot(_cbs(ours), forced, ":", color=OURS_COLOR, linewidth=1, label="of it forced by overflow")
    axes.set_title(f"{study.partitions} partitions, δ = {study.delta}", fontsize=9)
    axes.set_xlabel("CBS: consumers above the least, %")
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    for edge in ("top", "right"):
        axes.spines[edge].set_visible(False)


def _neighbours(points: Sequence[Point]) -> list[list[Point]]:
    """Return the points in groups so close that their names would lie on each other."""
    groups: list[list[Point]] = []
    for point in points:
        for group in groups:
            if abs(group[0].cbs.mean - point.cbs.mean) < 0.01 and abs(group[0].rscore.mean - point.rscore.mean) < 1:
                group.append(point)
                break
        else:
            groups.append([point])
    return groups


def _cbs(points: Sequence[Point]) -> list[float]:
    return [100 * point.cbs.mean for point in points]


def _rscores(points: Sequence[Point]) -> list[float]:
    return [point.rscore.mean for point in points]
