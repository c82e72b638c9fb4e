"""Pictures of runs in one style, for notebooks."""

from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from typing import Any, Final

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

NINES: Final = (0.5, 0.9, 0.99, 0.999, 0.9999)
BLUE, RED, GREY, GREEN = "#2f6f9f", "#c0392b", "#8a8a8a", "#2e8b57"
STYLE: Final = {
    "font.size": 9,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "axes.spines.top": False,
    "axes.spines.right": False,
}


class Picture(Figure):
    """A Matplotlib figure that every kind of notebook shows as PNG."""

    def _repr_png_(self) -> bytes:
        buffer = BytesIO()
        self.savefig(buffer, format="png", dpi=120)
        return buffer.getvalue()


@contextmanager
def picture(title: str, panels: int = 1) -> Iterator[tuple[Picture, list[Any]]]:
    """Yield an empty picture and its axes, one above the other with a common horizontal axis."""
    with mpl.rc_context(STYLE):
        drawn = Picture(figsize=(8, 1.2 + 2.2 * panels), layout="constrained")
        axes = drawn.subplots(panels, sharex=True, squeeze=False)[:, 0]
        axes[0].set_title(title, loc="left")
        yield drawn, list(axes)


def nines(axes: Any, latency_s: Any, label: str, colour: str) -> None:
    """Add a latency distribution to `axes`, with a horizontal axis on which each further nine is equally wide."""
    ordered = np.sort(np.asarray(latency_s, float))
    late_share = 1 - np.arange(len(ordered)) / len(ordered)
    axes.plot(-np.log10(late_share), ordered, color=colour, label=label)
    axes.set(xlabel="share of events", ylabel="latency, s", ylim=(0, None))
    axes.set_xticks([-np.log10(1 - share) for share in NINES], [f"{share:.6g}" for share in NINES])
