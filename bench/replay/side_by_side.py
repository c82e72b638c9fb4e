"""What the live run came to and what the simulator makes of it: differences, whether they are small, and a picture."""

from pathlib import Path
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from autoscaler.model import Action
from autoscaler.simulator.run import Run
from bench.replay.measured import Measured
from bench.replay.recorded import Recorded, Times
from report.measures import in_sla_share, percentile_us, replica_minutes

IN_SLA_POINTS: Final = 0.5
"""Percentage points by which the shares may differ for live to equal simulated."""
REPLICA_MINUTES_SHARE: Final = 0.03
"""Of the live replica-minutes, by which those of both may differ."""
PERCENTILES: Final = {"p50_s": 0.5, "p99_s": 0.99, "p999_s": 0.999, "max_s": 1.0}


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """One side. Latencies in seconds, nearest rank."""

    events: int
    in_sla: float
    p50_s: float
    p99_s: float
    p999_s: float
    max_s: float
    replica_minutes: float
    scale_ups: int
    scale_downs: int
    reassignments: int
    moved_partitions: int | None
    """None where the group places its partitions itself: the live journal does not know."""


class Differences(msgspec.Struct, frozen=True, kw_only=True):
    """Simulated minus live, in units of the figures but for the two that have limits."""

    in_sla_points: float
    """Percentage points."""
    replica_minutes_share: float
    """Of the live replica-minutes."""
    p50_s: float
    p99_s: float
    p999_s: float
    max_s: float
    scale_ups: int
    scale_downs: int
    reassignments: int
    moved_partitions: int | None


class Within(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the differences are within `IN_SLA_POINTS` and `REPLICA_MINUTES_SHARE`."""

    in_sla: bool
    replica_minutes: bool


class Replayed(msgspec.Struct, frozen=True, kw_only=True):
    """A run, live and simulated."""

    run: str
    scenario: str
    policy: str
    """Of the simulated side."""
    live_policy: str
    latency_target_s: float
    measured: Measured
    live: Figures
    simulated: Figures
    differences: Differences
    within: Within


def live_figures(recorded: Recorded) -> Figures:
    """Return the run's own result, by its own report. Raises ValueError where that lacks a figure."""
    result = recorded.result
    if result.replica_minutes is None:
        raise ValueError("its report knows no replica-minutes")
    plans = [plan for plan in recorded.plans if recorded.started_us <= plan.at_us < recorded.ended_us]
    named = all(plan.assignment is not None for plan in plans)
    latency_us = recorded.served.done_us - recorded.served.intended_us
    return Figures(
        events=result.events,
        in_sla=result.in_sla,
        **_percentiles(latency_us),
        replica_minutes=result.replica_minutes,
        scale_ups=result.scale_ups,
        scale_downs=result.scale_downs,
        reassignments=result.reassignments,
        moved_partitions=result.moved_partitions if named else None,
    )


def simulated_figures(recorded: Recorded, run: Run, latency_us: Times) -> Figures:
    """Return the figures of the simulated side. latency_us: from the intended time, by event."""
    info, lead_us = recorded.info, recorded.lead_us
    changes = [change for change in run.changes if change.at_s * 1e6 >= lead_us]
    taken = [change.action for change in changes]
    return Figures(
        events=len(latency_us),
        in_sla=in_sla_share(latency_us, info.latency_target_s),
        **_percentiles(latency_us),
        replica_minutes=replica_minutes(run.requested, lead_us, info.duration_s),
        scale_ups=taken.count(Action.UP),
        scale_downs=taken.count(Action.DOWN),
        reassignments=taken.count(Action.REASSIGN),
        moved_partitions=sum(change.moved for change in changes),
    )


def differences(live: Figures, simulated: Figures) -> Differences:
    """Return simulated minus live."""
    moved = None if live.moved_partitions is None else (simulated.moved_partitions or 0) - live.moved_partitions
    return Differences(
        in_sla_points=100 * (simulated.in_sla - live.in_sla),
        replica_minutes_share=simulated.replica_minutes / live.replica_minutes - 1,
        **{name: round(getattr(simulated, name) - getattr(live, name), 6) for name in PERCENTILES},
        scale_ups=simulated.scale_ups - live.scale_ups,
        scale_downs=simulated.scale_downs - live.scale_downs,
        reassignments=simulated.reassignments - live.reassignments,
        moved_partitions=moved,
    )


def within(found: Differences) -> Within:
    """Tell whether they are small."""
    return Within(
        in_sla=abs(found.in_sla_points) <= IN_SLA_POINTS,
        replica_minutes=abs(found.replica_minutes_share) <= REPLICA_MINUTES_SHARE,
    )


def _percentiles(latency_us: Times) -> dict[str, float]:
    return {name: percentile_us(latency_us, percentile) / 1e6 for name, percentile in PERCENTILES.items()}


LIVE: Final = "#0b6e99"
SIMULATED: Final = "#c2571a"
POINTS: Final = 400


def draw(live_us: Times, simulated_us: Times, path: Path, *, title: str, latency_target_s: float) -> None:
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


def shares_within(latency_us: Times, edges_s: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the share of events done within each of `edges_s`."""
    return np.searchsorted(np.sort(latency_us), np.round(edges_s * 1e6), side="right") / len(latency_us)
