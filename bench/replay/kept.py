"""The simulated side of a replay as the folder of a run, so that the report can judge it beside the live one."""

from pathlib import Path
from typing import Any

import msgspec
from numpy.typing import NDArray

from autoscaler.simulator.run import Run
from autoscaler.simulator.timeline import timeline
from bench.replay.measured import Measured
from bench.replay.question import fed_us, measured_values, workload_of
from bench.replay.recorded import Recorded
from bench.scenario import Scenario
from bench.simulation.folder import write_run
from report.run_info import RunInfo


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
