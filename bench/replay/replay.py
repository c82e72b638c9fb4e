"""A recorded run through the simulator; kept as the folder of a run, the report can read it beside the live one."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from autoscaler.simulator.run import Run, simulate
from autoscaler.simulator.timeline import timeline
from bench.replay.measured import Measured, measure, ticks_of
from bench.replay.question import (
    fed_us,
    measured_values,
    scenario_of,
    sent_in,
    settings_for,
    without_pauses,
    workload_of,
)
from bench.replay.recorded import Recorded, Times, read_run
from bench.replay.side_by_side import Replayed, differences, live_figures, simulated_figures, within
from bench.scenario import Scenario
from bench.simulation.build import policy_of
from bench.simulation.folder import write_run
from contracts.validation import InvalidSettingsError
from report.run_info import RunInfo

PLOT: Final = "live-simulated.svg"
"""Latencies of both, in the run's folder."""


def replay(
    folder: Path, changes: Mapping[str, Any] | None = None, *, kept: Path | None = None, command: str = ""
) -> tuple[Replayed, Times, Times]:
    """Simulate the run in `folder` again; return both sides, and the latencies of each (µs): live, simulated.

    changes: dotted key → value over what the run was told and what it showed. kept: folder that takes the simulated
    side as a run of its own, made by `command`.
    Raises InvalidSettingsError for a folder or a run that cannot be replayed, and for wrong changes.
    """
    recorded = read_run(folder)
    try:
        measured = without_pauses(measure(recorded), changes or {})
        live = live_figures(recorded)
    except ValueError as wrong:
        raise InvalidSettingsError([f"{folder}: {wrong}"]) from wrong
    scenario = scenario_of(recorded.info, measured, changes or {})
    run, latency_us = simulated(recorded, scenario, measured)
    if kept is not None:
        keep(kept, recorded, measured, scenario, run, command=command)
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
        within=within(found),
    )
    return both, recorded.served.done_us - recorded.served.intended_us, latency_us


def simulated(recorded: Recorded, scenario: Scenario, measured: Measured) -> tuple[Run, Times]:
    """Return the simulated run, and the latency of each event from its intended time, µs.

    Its time begins `recorded.lead_us` before second 0, as the autoscaler's did.
    """
    served, info, lead_us = recorded.served, recorded.info, recorded.lead_us
    at_us = fed_us(served, measured.transit_s) + lead_us
    workload, order = workload_of(served, at_us, info, lead_us=lead_us)
    policy = policy_of(scenario, sent_in(served, at_us, info, lead_us=lead_us))
    run = simulate(workload, policy, settings_for(scenario, measured), keep_events=True, ticks=ticks_of(recorded))
    latency_us = np.empty(len(served), np.int64)
    latency_us[order] = run.latency_us + (at_us - lead_us - served.intended_us)[order]
    return run, latency_us


def keep(
    folder: Path, recorded: Recorded, measured: Measured, scenario: Scenario, run: Run, *, command: str = ""
) -> Path:
    """Write the folder; return it. Events keep the intended times of the live ones, and second 0 is theirs.

    command: what made it. Raises InvalidSettingsError where it cannot be written.
    """
    info = _info(folder, recorded, _told(recorded, measured, scenario), run, command)
    return write_run(folder, run, info, _events(recorded, measured, run), began_us=_began_us(recorded))


def _began_us(recorded: Recorded) -> int:
    """Return what the beginning of the simulated run is."""
    return recorded.started_us - recorded.lead_us


def _told(recorded: Recorded, measured: Measured, scenario: Scenario) -> dict[str, Any]:
    """Return what both sides were told: not the measured times, of which each run has its own."""
    told: dict[str, Any] = msgspec.to_builtins(scenario) | {"topology": "payment-only"}
    for key, value in measured_values(measured).items():
        section, _, name = key.partition(".")
        live = recorded.info.scenario.get(section, {})
        if told[section][name] == value and name in live:
            told[section] = told[section] | {name: live[name]}
    return told


def _info(folder: Path, recorded: Recorded, told: dict[str, Any], run: Run, command: str) -> RunInfo:
    return msgspec.structs.replace(
        recorded.info,
        run=folder.resolve().name,
        scenario=told,
        policy=run.policy,
        topology="payment-only",
        world="simulated",
        bootstrap_servers="",
        client_properties="",
        started_us=recorded.started_us,
        drained_us=_began_us(recorded) + run.drained_us,
        events_scheduled=len(recorded.served),
        command=command,
        phases_s={},
        peak_memory_mib=None,
    )


def _events(recorded: Recorded, measured: Measured, run: Run) -> dict[str, NDArray[Any]]:
    """Return the timeline, with what the live events had before a replica could have them."""
    served, started_us = recorded.served, recorded.started_us
    at_us = fed_us(served, measured.transit_s) + recorded.lead_us
    order = workload_of(served, at_us, recorded.info, lead_us=recorded.lead_us)[1]
    return timeline(run, _began_us(recorded)) | {
        "intended_us": started_us + served.intended_us[order],
        "placed_us": started_us + served.handed_us[order],
    }
