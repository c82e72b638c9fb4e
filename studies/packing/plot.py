"""The picture of the comparison: load that moves against consumers that it takes."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from bench.picture import COLORS, picture
from studies.packing.compare import EXISTING, KEEP_IN_PLACE, MODIFIED, Study

GROUPS: Final = (
    ("any fit", "#888888", "o"), ("modified any fit", COLORS[1], "o"), ("keep in place", COLORS[0], "o-"),
)  # fmt: skip


def draw(studies: Sequence[Study], path: Path) -> None:
    """Write an SVG file with one field for each study."""
    with picture(path, 4.6 * len(studies), 4.2) as figure:
        fields = figure.subplots(1, len(studies), squeeze=False)[0]
        for axes, study in zip(fields, studies, strict=True):
            _field(axes, study)
        fields[0].set_ylabel("Rscore: capacities that move in an iteration")
        handles, labels = fields[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))


def _field(axes: Any, study: Study) -> None:
    ours = [one for one in study.points if one.packer.startswith(KEEP_IN_PLACE)]
    published = {one.packer: one for one in study.points}
    groups = ([published[name] for name in EXISTING], [published[name] for name in MODIFIED], ours)
    for (label, color, style), points in zip(GROUPS, groups, strict=True):
        points.sort(key=lambda one: one.cbs.mean)
        above, moving = [100 * one.cbs.mean for one in points], [one.rscore.mean for one in points]
        axes.plot(above, moving, style, color=color, markersize=4, label=label)
        for at, one in enumerate(points):
            if points is not ours:
                offset = (4, 3 if at % 2 else -9)
                where = (above[at], moving[at])
                axes.annotate(one.packer, where, xytext=offset, textcoords="offset points", fontsize=7, color=color)
    axes.set_title(f"{study.partitions} partitions, δ = {study.delta}", fontsize=9)
    axes.set_xlabel("CBS: consumers above the least, %")
    axes.set_ylim(bottom=0)
