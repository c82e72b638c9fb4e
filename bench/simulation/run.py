"""One question to the simulated world, from a scenario to its figures."""

import time
from collections.abc import Callable

from autoscaler.jit import load_compiler
from autoscaler.simulator.run import Run, simulate
from bench.scenario import Scenario
from bench.simulation.build import policy_of, settings_of
from bench.simulation.foresight import bound_capacity
from bench.simulation.judge import judge
from bench.simulation.result import SimulationResult
from bench.simulation.sent import sent_by
from loadgen.trace import Trace


def simulate_scenario(
    scenario: Scenario, *, trace: Trace | None = None, passed: Callable[[int], None] | None = None
) -> SimulationResult:
    """Simulate and judge; policy and seed are the scenario's. See `run_scenario`."""
    return run_scenario(scenario, trace=trace, keep_events=False, passed=passed)[1]


def run_scenario(
    scenario: Scenario,
    *,
    trace: Trace | None = None,
    keep_events: bool = True,
    passed: Callable[[int], None] | None = None,
) -> tuple[Run, SimulationResult]:
    """Simulate a scenario; return what happened and its figures.

    trace: replaces the scenario's rate and duration. keep_events: off, only latencies are kept.
    passed: told how many more events the simulation has reached.
    Raises InvalidSettingsError for what cannot be simulated.
    """
    load_compiler()  # its import is not the simulation's time
    began_s = time.perf_counter()
    sent = sent_by(scenario, trace)
    bound_capacity(scenario, sent)  # a question without a bound is refused before it takes time
    run = simulate(
        sent.workload(passed),
        policy_of(scenario, sent),
        settings_of(scenario),
        keep_events=keep_events,
        clock=time.perf_counter,
    )
    return run, judge(scenario, sent, run, wall_s=time.perf_counter() - began_s)
