"""A recorded run through the simulator."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from autoscaler.simulator.run import Run, simulate
from bench.replay.commits import ticks_of
from bench.replay.kept import keep
from bench.replay.measured import Measured, measure
from bench.replay.question import fed_us, scenario_of, sent_in, settings_for, without_pauses, workload_of
from bench.replay.recorded import Recorded, Times, read_run
from bench.replay.side_by_side import Replayed, differences, live_figures, simulated_figures, within
from bench.scenario import Scenario
from bench.simulation.build import policy_of
from contracts.validation import InvalidSettingsError

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
