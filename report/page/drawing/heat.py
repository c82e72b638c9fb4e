"""Partition × time: the worst latency of each cell, and where a partition changed its owner."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from report.page.drawing.frame import Frame, clip, time_axis
from report.page.drawing.svg import drawing, element, number, text
from report.page.happenings import Tenures, owner_changes
from report.page.reduction import bucket, floats, reduce
from report.result import HeatMap, Result
from report.wording import duration

BOUNDS: Final = (0.25, 0.5, 1.0, 2.0, 5.0)
"""Between the classes of colour, in latency targets: blue within the target, orange beyond, ever further from paper."""
TOP_PX: Final = 26
TALLEST_PX: Final = 600
ROW_PX: Final = 22
LABEL_PX: Final = 13
COLUMN_PX: Final = 3


def heat_map(result: Result, held: Tenures, width: int) -> str:
    """Return the drawing. The result must have a heat map with at least one partition."""
    assert result.heat is not None
    heat = result.heat
    frame = Frame.of(width, len(result.series.arrivals))
    rows = len(heat.partitions)
    row = min(float(ROW_PX), TALLEST_PX / rows)
    bottom = TOP_PX + rows * row
    name = f"heat-{width}"
    cells, cell_s = worst(heat, (frame.right - frame.left) // COLUMN_PX)
    x = frame.x.at(np.minimum(np.arange(cells.shape[1] + 1) * cell_s, frame.seconds))
    level = np.digitize(cells / result.latency_target_s, BOUNDS, right=True)
    level[np.isnan(cells)] = -1
    paths = [
        element("path", d=_runs(level == one, x, row), class_=f"cell heat-{one}", data_level=one)
        for one in range(len(BOUNDS) + 1)
    ]
    place = {partition: number for number, partition in enumerate(heat.partitions)}
    changes = "".join(
        f"M{number(float(frame.x.at([change.at_s])[0]))} {number(TOP_PX + place[change.partition] * row)}v{number(row)}"
        for change in owner_changes(held)
    )
    every = max(1, int(np.ceil(LABEL_PX / row)))
    labels = [
        text(str(heat.partitions[k]), frame.left - 6, TOP_PX + (k + 0.5) * row + 4, anchor="end")
        for k in range(0, rows, every)
    ]
    return drawing(
        [
            clip(frame, name, bottom), time_axis(frame, TOP_PX, bottom),
            text("Partition", frame.left, 14, class_="title"),
            *labels, *paths,
            element("path", d=changes, class_="line halo", data_changes=""),
            element("path", d=changes, class_="line change", data_changes=""),
        ],
        width=width, height=bottom + 24, data_chart="heat", data_left=frame.left, data_right=frame.right,
        data_top=TOP_PX, data_bottom=bottom, data_row=f"{row:.3f}", style=f"--clip: url(#{name})",
    )  # fmt: skip


def worst(heat: HeatMap, columns: int) -> tuple[NDArray[np.float64], float]:
    """Return the worst latency by partition and cell, `columns` cells at most, and the length of a cell in seconds."""
    step = bucket(max(map(len, heat.max_s)), columns)
    return np.array([reduce(list(floats(row)), step).high for row in heat.max_s]), step * heat.cell_s


def key(target_s: float) -> list[tuple[str, str]]:
    """Return class and words of every colour."""
    at = [duration(bound * target_s) for bound in BOUNDS]
    words = [f"≤ {at[0]}", *(f"≤ {bound}" for bound in at[1:]), f"> {at[-1]}"]
    return [(f"heat-{level}", word) for level, word in enumerate(words)]


def _runs(chosen: NDArray[np.bool_], x: NDArray[np.float64], row: float) -> str:
    """Return path data that covers the chosen cells, neighbours in one piece."""
    parts = []
    for number_, cells in enumerate(chosen):
        edges = np.flatnonzero(np.diff(np.concatenate([[False], cells, [False]]).astype(np.int8)))
        y = TOP_PX + number_ * row
        for first, last in zip(edges[::2], edges[1::2], strict=True):
            left, right = number(float(x[first])), number(float(x[last]))
            parts.append(f"M{left} {number(y)}H{right}v{number(row)}H{left}z")
    return "".join(parts)
