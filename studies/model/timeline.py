"""W1 second by second: what arrives, the least replicas that could hold it, and what policies asked for."""

from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bench.scenario import load_scenario
from bench.simulation.build import bound_capacity, bound_schedule
from bench.simulation.run import run_scenario
from bench.simulation.sent import sent_by

SCENARIO: Final = "w1"
POLICIES: Final = {"tail-aware": "#0b6e99", "algorithm-2": "#c2571a", "keda-hpa": "#7a5195"}


def requested(policy: str) -> tuple[str, NDArray[np.float64], NDArray[np.float64]]:
    """Return a label with the figures, and times in s and requested replicas as steps."""
    scenario = load_scenario(SCENARIO, {"policy": policy})
    run, result = run_scenario(scenario)
    at_us, replicas = np.array([*run.requested, (round(run.duration_s * 1e6), run.requested[-1][1])]).T
    label = f"{policy}: {100 * result.in_sla:.2f} % in time, {result.replica_minutes:.1f} replica-minutes"
    return label, at_us / 1e6, replicas.astype(np.float64)


def draw(path: Path) -> None:
    """Write an SVG file."""
    import matplotlib as mpl  # noqa: PLC0415  half a second, and only here
    from matplotlib.figure import Figure  # noqa: PLC0415

    scenario = load_scenario(SCENARIO)
    sent = sent_by(scenario, None)
    table = sent.table()
    least = np.array([max(1, len(bins)) for bins in bound_schedule(table, bound_capacity(scenario, sent))])
    with mpl.rc_context({"svg.hashsalt": "tailpack", "svg.fonttype": "none", "font.size": 9}):
        figure = Figure(figsize=(8, 4.4), layout="constrained")
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=(1, 1.6))
        above.fill_between(np.arange(len(table)), table.sum(axis=1), step="post", color="#bbbbbb")
        above.set_ylabel("events/s")
        bound = f"the least that holds each second's events: {least.sum() / 60:.1f} replica-minutes"
        below.fill_between(np.arange(len(least)), least, step="post", color="#dddddd", label=bound)
        for offset, (policy, color) in enumerate(POLICIES.items()):
            label, at_s, replicas = requested(policy)
            below.step(at_s, replicas + 0.04 * (offset - 1), where="post", color=color, linewidth=1.3, label=label)
        below.set_ylabel("replicas requested")
        below.set_xlabel("s")
        below.legend(loc="upper left", frameon=False, fontsize=8)
        below.set_ylim(0, below.get_ylim()[1] + 2.5)
        figure.savefig(path, format="svg", metadata={"Date": None})
