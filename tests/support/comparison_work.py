"""Work for the processes of a comparison, named so that they can import it."""

import os
import signal
import time

from bench.experiments.experiment import Experiment
from bench.simulation.result import SimulationResult
from contracts.validation import InvalidSettingsError


def told(one: Experiment, *, in_sla: float = 0.99, replica_minutes: float = 30.0) -> SimulationResult:
    """Return the result of a run that nobody had to compute."""
    return SimulationResult(
        scenario=one.scenario, policy=one.policy, seed=one.seed, events=1000, in_sla=in_sla, p50_s=0.1, p99_s=0.4,
        p999_s=0.6, max_s=0.9, replica_minutes=replica_minutes, priced_minutes=replica_minutes,
        packing_replica_minutes=25.0, scale_ups=6, scale_downs=5, reassignments=4, moved_partitions=20,
        wall_s=0.01, policy_s=0.001,
    )  # fmt: skip


def quick(one: Experiment) -> SimulationResult:
    """Done at once."""
    return told(one)


def refused(one: Experiment) -> SimulationResult:
    """Never done."""
    raise AssertionError(f"{one} was computed although it was known")


def eventful(one: Experiment) -> SimulationResult:
    """Seed 2 is a fault, seed 3 is told wrong settings, seed 4 takes its process along, 5 is told Ctrl-C."""
    if one.seed == 2:
        raise ZeroDivisionError("no replica left")
    if one.seed == 3:
        raise InvalidSettingsError(["payment.partitions = 0: must be at least 1"])
    if one.seed == 4:
        os._exit(9)
    if one.seed == 5:
        os.kill(os.getpid(), signal.SIGINT)
    return told(one)


def endless(one: Experiment) -> SimulationResult:
    """Seed 1 is done at once, every other one never."""
    if one.seed != 1:
        time.sleep(3600)
    return told(one)
