"""Live beside simulated: what each side of a recorded run came to, and how far they are apart.

And what a run's own events would have come to under other policies.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np

from autoscaler.model import Action
from autoscaler.simulator.run import Run
from bench import BenchError
from bench.picture import COLORS, picture
from bench.replay.measured import Measured, measure
from bench.replay.recorded import Recorded, Times, read_run
from bench.replay.world import best_of, scenario_of, simulated
from bench.simulation.build import CLAIRVOYANT
from bench.simulation.optimum import optimum_beside
from bench.simulation.run import run_scenario
from bench.simulation.sent import sent_by
from contracts.validation import InvalidSettingsError
from report.measures import in_sla_share, percentile_us, replica_minutes
from report.result import Otherwise
from report.run_info import RunInfo

PLOT: Final = "live-simulated.svg"
"""Latencies of both, in the run's folder."""
IN_SLA_POINTS: Final = 0.5
"""Percentage points by which the shares may differ for live to equal simulated."""
REPLICA_MINUTES_SHARE: Final = 0.03
"""Of the live replica-minutes, by which those of both may differ."""
PERCENTILES: Final = {"p50_s": 0.5, "p99_s": 0.99, "p999_s": 0.999, "max_s": 1.0}
COUNTS: Final = ("scale_ups", "scale_downs", "reassignments", "moved_partitions")
POINTS: Final = 400
"""Of a curve in the picture."""
OTHERS: Final = ("overprovisioned", "keda-hpa", "algorithm-2")
"""Fixed at the peak, Kubernetes' way, and the published one that plans for the lag."""
MOST_EVENTS: Final = 3_000_000
"""Of longer runs nobody would wait for the answer."""


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
    differences: dict[str, Any]
    """Simulated minus live: in_sla_points (percentage points), replica_minutes_share (of the live ones), the latencies
    in seconds, the counts; None where live is unknown."""
    within: dict[str, bool]
    """Whether in_sla and replica_minutes are within `IN_SLA_POINTS` and `REPLICA_MINUTES_SHARE`."""


def replay(folder: Path, changes: Mapping[str, Any] | None = None) -> tuple[Replayed, Times, Times]:
    """Simulate the run in `folder` again; return both sides, and the latencies of each (µs): live, simulated.

    changes: dotted key → value over what the run was told and what it showed.
    Raises InvalidSettingsError for a folder or a run that cannot be replayed, and for wrong changes.
    """
    recorded = read_run(folder)
    try:
        measured = measure(recorded)
        live = live_figures(recorded)
    except ValueError as wrong:
        raise InvalidSettingsError([f"{folder}: {wrong}"]) from wrong
    if {key.rpartition(".")[2] for key in changes or {}} & {"pause_s", "rebalance_time_s"}:
        measured = msgspec.structs.replace(measured, pause_s=None, pause_p99_s=None, pauses=0)
    scenario = scenario_of(recorded.info, measured, changes or {})
    run, latency_us = simulated(recorded, scenario, measured)
    again = simulated_figures(recorded, run, latency_us)
    found = differences(live, again)
    both = Replayed(
        run=recorded.info.run,
        scenario=scenario.name,
        policy=run.policy,
        live_policy=recorded.info.policy,
        latency_target_s=recorded.info.latency_target_s,
        measured=measured,
        live=live,
        simulated=again,
        differences=found,
        within={
            "in_sla": abs(found["in_sla_points"]) <= IN_SLA_POINTS,
            "replica_minutes": abs(found["replica_minutes_share"]) <= REPLICA_MINUTES_SHARE,
        },
    )
    return both, recorded.served.latency_us, latency_us


def live_figures(recorded: Recorded) -> Figures:
    """Return the run's own result, by its own report. Raises ValueError where that lacks a figure."""
    result = recorded.result
    if result.replica_minutes is None:
        raise ValueError("its report knows no replica-minutes")
    plans = [plan for plan in recorded.plans if recorded.started_us <= plan.at_us < recorded.ended_us]
    taken = [plan.action for plan in plans]
    named = all(plan.assignment is not None for plan in plans)
    return Figures(
        events=result.events,
        in_sla=result.in_sla,
        **_percentiles(recorded.served.latency_us),
        replica_minutes=result.replica_minutes,
        scale_ups=taken.count(Action.UP),
        scale_downs=taken.count(Action.DOWN),
        reassignments=taken.count(Action.REASSIGN),
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


def _percentiles(latency_us: Times) -> dict[str, float]:
    return {name: percentile_us(latency_us, percentile) / 1e6 for name, percentile in PERCENTILES.items()}


def differences(live: Figures, simulated: Figures) -> dict[str, Any]:
    """Return simulated minus live, as `Replayed` has it."""
    pairs = {name: (getattr(simulated, name), getattr(live, name)) for name in (*PERCENTILES, *COUNTS)}
    return {
        "in_sla_points": 100 * (simulated.in_sla - live.in_sla),
        "replica_minutes_share": simulated.replica_minutes / live.replica_minutes - 1,
        **{name: None if own is None else round(other - own, 6) for name, (other, own) in pairs.items()},
    }


def draw(found: Replayed, live_us: Times, simulated_us: Times, path: Path) -> None:
    """Write an SVG file. Left: share done within; right: share later than, log."""
    both_us = np.concatenate([live_us, simulated_us])
    edges_s = np.geomspace(max(1, both_us.min()), max(2, both_us.max()), POINTS) / 1e6
    with picture(path, 9, 3.6) as figure:
        figure.suptitle(f"{found.run}: live {found.live_policy}, simulated {found.policy}")
        within, later = figure.subplots(1, 2)
        for name, latency_us, color, style in (("live", live_us, 0, "-"), ("simulated", simulated_us, 1, "--")):
            share = np.searchsorted(np.sort(latency_us), np.round(edges_s * 1e6), side="right") / len(latency_us)
            line = {"color": COLORS[color], "linestyle": style, "linewidth": 1.4, "label": name}
            within.plot(edges_s, share, **line)
            later.plot(edges_s, np.where(share < 1, 1 - share, np.nan), **line)
        within.set_ylabel("share of events done within")
        later.set(ylabel="share of events later than (log)", yscale="log")
        for axes in (within, later):
            axes.set(xscale="log", xlabel="latency from the intended time, s (log)")
            axes.axvline(found.latency_target_s, color="#888888", linestyle=":", linewidth=1)
        within.legend(loc="upper left")


def otherwise(folder: Path) -> tuple[Otherwise, ...]:
    """Return what the run in `folder` would have come to under `OTHERS`, and at best. Raises BenchError."""
    try:
        info = RunInfo.load(folder)
        if info.events_scheduled > MOST_EVENTS:
            raise BenchError(f"{info.events_scheduled:,} events would take too long; {MOST_EVENTS:,} at most")
        others = [policy for policy in OTHERS if policy != info.policy]
        if info.world == "simulated":
            found = tuple(_simulated(info, policy) for policy in others)
        else:
            found = tuple(_replayed(folder, policy) for policy in others)
        return found + _optimum(folder, info)
    except (InvalidSettingsError, OSError, ValueError, msgspec.DecodeError) as wrong:
        raise BenchError(str(wrong)) from wrong


def _replayed(folder: Path, policy: str) -> Otherwise:
    """Return a live run's events, with the times that it showed, under another policy."""
    figures = replay(folder, {"autoscaler.policy": policy})[0].simulated
    return Otherwise(policy=policy, in_sla=figures.in_sla, replica_minutes=figures.replica_minutes)


def _simulated(info: RunInfo, policy: str) -> Otherwise:
    """Return a simulated run's scenario under another policy. Raises ValueError where that makes other events."""
    figures = run_scenario(scenario_of(info, None, {"autoscaler.policy": policy}), keep_events=False)[1]
    if figures.events != info.events_scheduled:
        raise ValueError(f"{info.run}: its events came from a trace that its run.json does not hold")
    return Otherwise(policy=policy, in_sla=figures.in_sla, replica_minutes=figures.replica_minutes)


def _optimum(folder: Path, info: RunInfo) -> tuple[Otherwise, ...]:
    """Return the schedule of the optimum, carried out; nothing where it is not known or would take long."""
    if info.world == "simulated":
        scenario = scenario_of(info, None, {"autoscaler.policy": CLAIRVOYANT})
        sent = sent_by(scenario)
    else:
        recorded = read_run(folder)
        scenario, sent = best_of(recorded, measure(recorded))
    found, _ = optimum_beside(scenario, sent)
    if found is None or found.optimum_replica_minutes is None:
        return ()
    in_sla, minutes = 1 - found.late / max(1, sent.events), found.optimum_replica_minutes
    return (Otherwise(policy=CLAIRVOYANT, in_sla=in_sla, replica_minutes=minutes, lower=found.lower),)
