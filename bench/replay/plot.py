"""The picture of a replay: how latencies of the live and the simulated run are distributed, and their tails."""

from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from bench.replay.recorded import Times

LIVE: Final = "#0b6e99"
SIMULATED: Final = "#c2571a"
POINTS: Final = 400


def draw(live_us: "Times", simulated_us: "Times", path: Path, *, title: str, latency_target_s: float) -> None:
    """Write an SVG file; equal latencies make equal bytes. Left: share done within; right: share later than, log."""
    import matplotlib as mpl  # noqa: PLC0415  half a second, and only here
    from matplotlib.figure import Figure  # noqa: PLC0415

    both_us = np.concatenate([live_us, simulated_us])
    edges_s = np.geomspace(max(1, both_us.min()), max(2, both_us.max()), POINTS) / 1e6
    with mpl.rc_context({"svg.hashsalt": "tailpack", "svg.fonttype": "none", "font.size": 9}):
        figure = Figure(figsize=(9, 3.6), layout="constrained")
        figure.suptitle(title)
        within, later = figure.subplots(1, 2)
        for name, latency_us, color in (("live", live_us, LIVE), ("simulated", simulated_us, SIMULATED)):
            share = shares_within(latency_us, edges_s)
            line = {"color": color, "linestyle": "-" if color == LIVE else "--", "linewidth": 1.4, "label": name}
            within.plot(edges_s, share, **line)
            later.plot(edges_s, np.where(share < 1, 1 - share, np.nan), **line)
        within.set_ylabel("share of events done within")
        later.set_ylabel("share of events later than (log)")
        later.set_yscale("log")
        for axes in (within, later):
            axes.set_xscale("log")
            axes.axvline(latency_target_s, color="#888888", linestyle=":", linewidth=1)
            axes.set_xlabel("latency from the intended time, s (log)")
            axes.grid(alpha=0.3)
            for edge in ("top", "right"):
                axes.spines[edge].set_visible(False)
        within.legend(loc="upper left", frameon=False)
        figure.savefig(path, format="svg", metadata={"Date": None})


def shares_within(latency_us: "Times", edges_s: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the share of events done within each of `edges_s`."""
    return np.searchsorted(np.sort(latency_us), np.round(edges_s * 1e6), side="right") / len(latency_us)
