"""Live beside simulated: a recorded run through the simulator, what each side came to, and how far they are apart."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np

from autoscaler.live.settings import AutoscalerSettings
from autoscaler.model import Action
from autoscaler.simulator.arrivals import Arrivals, Workload
from autoscaler.simulator.run import Run, simulate
from autoscaler.simulator.settings import DeliverySettings, SimulationSettings
from bench.picture import COLORS, picture
from bench.replay.measured import Measured, measure, ticks_of
from bench.replay.recorded import Recorded, Served, Times, read_run
from bench.scenario import SIMULATION, Scenario, load_scenario, scenario_names
from bench.sections import OPTIONS, SECTIONS
from bench.simulation.build import CLAIRVOYANT, delivery_of, policy_of, settings_of
from bench.simulation.sent import Sent
from contracts.delivery import OUR_DELIVERIES, Delivery
from contracts.validation import InvalidSettingsError
from loadgen.schedule import SECOND_US, Spacing, Split
from report.measures import in_sla_share, percentile_us, replica_minutes
from report.run_info import RunInfo

PLOT: Final = "live-simulated.svg"
"""Latencies of both, in the run's folder."""
BASE: Final = "w1"
"""Scenario file under a run whose own is not delivered: the run's values replace all of it."""
TIMESTAMP_US: Final = 1000
"""Resolution of the timestamps of Kafka's records."""
LIVE: Final = AutoscalerSettings(policy="static", payment_partitions=1, state_dir="")
"""What live autoscalers are told where a scenario says nothing."""
IN_SLA_POINTS: Final = 0.5
"""Percentage points by which the shares may differ for live to equal simulated."""
REPLICA_MINUTES_SHARE: Final = 0.03
"""Of the live replica-minutes, by which those of both may differ."""
PERCENTILES: Final = {"p50_s": 0.5, "p99_s": 0.99, "p999_s": 0.999, "max_s": 1.0}
COUNTS: Final = ("scale_ups", "scale_downs", "reassignments", "moved_partitions")
POINTS: Final = 400
"""Of a curve in the picture."""


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


def scenario_of(info: RunInfo, measured: Measured | None, changes: Mapping[str, Any]) -> Scenario:
    """Return the run's scenario: measured values over those it was run with, `changes` over both.

    measured: None of a simulated run, which took the times that it was told.
    Raises InvalidSettingsError for what the simulator does not know, and for changes that make no sense.
    """
    name = str(info.scenario.get("name", ""))
    runtime = info.scenario.get("payment", {}).get("runtime", "")
    if runtime and runtime not in list(Delivery):
        raise InvalidSettingsError(
            [f"{info.run}: runtime {runtime!r} has no simulation; known are {', '.join(Delivery)}"]
        )
    other_policy = any(changes.get(key, info.policy) != info.policy for key in ("autoscaler.policy", "policy"))
    values = {key: value for key, value in _flat(info.scenario) if not (other_policy and key.startswith(f"{OPTIONS}."))}
    if measured is not None:
        values |= {
            "payment.service_time_s": 1 / measured.service_rate,
            "autoscaler.tick_offset_s": measured.tick_offset_s,
            "autoscaler.initial_replicas": measured.initial_replicas,
        }
        if measured.startup_s is not None:
            values |= {"simulation.startup_s": measured.startup_s}
    return load_scenario(name if name in scenario_names() else BASE, values | dict(changes))


def _flat(recorded: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield dotted key and value of a scenario's record; [simulation] last, for other sections' values replace its."""
    nested = [*(name for name in (*SECTIONS, OPTIONS) if name and name != SIMULATION), SIMULATION]
    yield from ((key, value) for key, value in recorded.items() if key not in nested)
    for section in nested:
        yield from ((f"{section}.{key}", value) for key, value in recorded.get(section, {}).items())


def simulated(recorded: Recorded, scenario: Scenario, measured: Measured) -> tuple[Run, Times]:
    """Return the simulated run, and the latency of each event from its intended time, µs.

    Its time begins `recorded.lead_us` before second 0, as the autoscaler's did.
    """
    served, info, lead_us = recorded.served, recorded.info, recorded.lead_us
    at_us = fed_us(served, measured.transit_s) + lead_us
    order = np.argsort(at_us, kind="stable")
    workload = Workload.whole(
        Arrivals(at_us[order], served.partition[order]),
        partitions=info.payment_partitions,
        duration_s=max(info.duration_s + lead_us / 1e6, (int(at_us.max()) + 1) / 1e6),
    )
    policy = policy_of(scenario, _sent(recorded, at_us))
    run = simulate(workload, policy, settings_for(scenario, measured), keep_events=True, ticks=ticks_of(recorded))
    latency_us = np.empty(len(served), np.int64)
    latency_us[order] = run.latency_us + (at_us - lead_us - served.intended_us)[order]
    return run, latency_us


def fed_us(served: Served, transit_s: float | None) -> Times:
    """Return when a replica can first have each event: the way through the broker after it was handed over.

    In µs since second 0, and none before that. Replicas serve the oldest first, by timestamps of whole milliseconds,
    and those of one millisecond partition by partition: such events have their times exchanged, to come in that order.
    """
    order = np.lexsort((np.arange(len(served)), served.partition, served.handed_us // TIMESTAMP_US))
    at_us = np.empty(len(served), np.int64)
    at_us[order] = np.sort(served.handed_us)
    return np.maximum(0, at_us + round((transit_s or 0.0) * 1e6))


def _sent(recorded: Recorded, at_us: Times) -> Sent:
    """Return the run's own events as a table, as reference policies are told about them beforehand."""
    info, second = recorded.info, at_us // SECOND_US
    seconds = max(int(info.duration_s) + recorded.lead_us // SECOND_US, int(second.max()) + 1)
    partitions = info.payment_partitions
    counts = np.bincount(second * partitions + recorded.served.partition, minlength=seconds * partitions)
    spacing = Spacing(info.scenario.get("load", {}).get("spacing", Spacing.BURST))
    return Sent(counts.reshape(seconds, partitions), spacing, Split.TABLE, partitions, info.seed)


def settings_for(scenario: Scenario, measured: Measured) -> SimulationSettings:
    """Return the world of the run, with what a scenario cannot say."""
    settings = settings_of(scenario)
    if scenario.autoscaler.policy == CLAIRVOYANT:
        return settings  # its world knows no cost, whatever was measured
    learns, told_s = scenario.autoscaler.learn_rebalance_time, scenario.autoscaler.rebalance_time_s
    ours = delivery_of(scenario) in OUR_DELIVERIES
    return replace(
        settings,
        delivery=_as_ours(settings.delivery, measured) if ours else settings.delivery,
        commit_age_s=measured.commit_age_s,
        commit_interval_s=measured.commit_interval_s,
        slots_between=True,
        stop_s=measured.stop_s or 0.0,
        planned_overhead_s=LIVE.overhead_s,
        planned_rebalance_time_s=measured.pause_p99_s if learns else told_s,
        planned_startup_s=LIVE.startup_s,
        planned_commit_age_s=LIVE.commit_age_s,
    )


def _as_ours(delivery: DeliverySettings, measured: Measured) -> DeliverySettings:
    """Return how our own replicas do it: they read plans themselves, so that no heartbeat has to bring the news."""
    delivery = replace(delivery, heartbeat_s=0.0, notice_s=measured.notice_s or 0.0)
    if measured.pause_s is None:
        return delivery
    return replace(delivery, pause_s=measured.pause_s, rebalance_time_s=measured.pause_s)


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
