"""A run of any size, to be reported on: W1 again and again through the simulator.

Ten replicas on average share 24 partitions; each ten minutes have three waves of bursts, in which plans move
partitions, replicas start, and one dies.
"""

from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from autoscaler.jit import load_compiler
from autoscaler.simulator.run import Run, simulate
from autoscaler.simulator.timeline import timeline
from bench.scenario import Scenario, load_scenario
from bench.simulation.build import policy_of, settings_of
from bench.simulation.sent import Sent, sent_by
from loadgen.shapes import IntArray, w1
from loadgen.trace import Trace

TIMES_W1: Final = 18
"""How many times the events of W1 arrive, at a fifth of its service time."""
PARTITIONS: Final = 24
PLACED_LATE_US: Final = 150.0
"""Mean time from the intended to the real sending of an event."""
NOTED_LATE_US: Final = 400
"""A completion is noted up to so much later than it is simulated, less than a service takes: else there were few
different latencies, unlike in any real run."""
DIES_AT_S: Final = 200
"""Of each ten minutes; it is the replica that has most to do, and nobody is told until its session expires."""


def made_up(events: int, seed: int) -> tuple[Scenario, Sent, Run]:
    """Return a run of exactly `events` events, with its scenario and what was sent."""
    load_compiler()
    counts = counts_of(events)
    scenario = scenario_for(seed, len(counts))
    sent = sent_by(scenario, Trace("W1 again and again", counts))
    return scenario, sent, simulate(sent.workload(), policy_of(scenario, sent), settings_of(scenario))


def counts_of(events: int) -> IntArray:
    """Return events of each second, in all as many as asked for; W1 ends early the last time."""
    once = TIMES_W1 * w1()
    counts = np.tile(once, -(-events // int(once.sum())))
    counts = np.diff(np.minimum(np.cumsum(counts), events), prepend=0)
    return counts[: int(np.flatnonzero(counts)[-1]) + 1]


def as_noted(run: Run, seed: int) -> dict[str, NDArray[Any]]:
    """Return the events of a run with times as processes note them: a little late."""
    columns, chance = timeline(run, 0), np.random.default_rng(seed)
    count = len(columns["done_us"])
    sent_us = columns["placed_us"] + chance.exponential(PLACED_LATE_US, count).astype(np.int64)
    noted_us = columns["done_us"] + chance.integers(0, NOTED_LATE_US, count)
    return columns | {"placed_us": np.minimum(sent_us, columns["received_us"]), "done_us": noted_us}


def scenario_for(seed: int, duration_s: int) -> Scenario:
    """Return the scenario of a run so long, whatever W1 itself lasts."""
    changes = {
        "payment.partitions": PARTITIONS,
        "payment.service_time_s": 0.001,
        "payment.session_s": 3,
        "simulation.split": "random",
        "simulation.startup_s": 1.5,
        "simulation.failures_known": False,
        "autoscaler.initial_replicas": 4,
        "seed": seed,
    }
    once = load_scenario("w1", changes)
    deaths_s = tuple(map(float, range(DIES_AT_S, duration_s, len(w1()))))
    return replace(once, duration_s=duration_s, simulation=replace(once.simulation, failures_s=deaths_s))
