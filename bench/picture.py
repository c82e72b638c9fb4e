"""The frame that all pictures share."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLORS: Final = (
    "#0b6e99", "#c2571a", "#4c8c2b", "#7a4fa3", "#b8860b", "#c03a5b", "#2f9e8f", "#5b6770", "#a0522d", "#3d5a98",
)  # fmt: skip
STYLE: Final = {
    "svg.hashsalt": "tailpack",
    "svg.fonttype": "none",
    "font.size": 9,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
}


@contextmanager
def picture(path: Path, width: float, height: float) -> "Iterator[Figure]":
    """Yield a figure of this size, in inches; after the block it is an SVG file. Equal figures make equal bytes."""
    import matplotlib as mpl  # noqa: PLC0415  half a second, and only here
    from matplotlib.figure import Figure  # noqa: PLC0415

    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(width, height), layout="constrained")
        yield figure
        figure.savefig(path, format="svg", metadata={"Date": None})
