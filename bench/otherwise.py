"""What a run's own events would have come to under other policies, by simulating them."""

from pathlib import Path
from typing import Final

import msgspec

from bench.replay.replay import replay, scenario_of
from bench.simulation.run import run_scenario
from contracts.validation import InvalidSettingsError
from report.result import Otherwise
from report.run_info import RunInfo

OTHERS: Final = ("overprovisioned", "keda-hpa", "algorithm-2")
"""Fixed at the peak, Kubernetes' way, and the published one that plans for the lag."""
MOST_EVENTS: Final = 3_000_000
"""Of longer runs nobody would wait for the answer."""


class NotSimulatedError(Exception):
    """The run cannot be simulated under another policy; the message says why."""


def otherwise(folder: Path) -> tuple[Otherwise, ...]:
    """Return what the run in `folder` would have come to under `OTHERS`. Raises NotSimulatedError."""
    try:
        info = RunInfo.load(folder)
        if info.events_scheduled > MOST_EVENTS:
            raise NotSimulatedError(f"{info.events_scheduled:,} events would take too long; {MOST_EVENTS:,} at most")
        others = [policy for policy in OTHERS if policy != info.policy]
        if info.world == "simulated":
            return tuple(_simulated(info, policy) for policy in others)
        return tuple(_replayed(folder, policy) for policy in others)
    except (InvalidSettingsError, OSError, ValueError, msgspec.DecodeError) as wrong:
        raise NotSimulatedError(str(wrong)) from wrong


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
