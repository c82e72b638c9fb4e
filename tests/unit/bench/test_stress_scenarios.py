"""Each stress scenario runs, loses nothing and follows from its seed."""

import pytest

from autoscaler.simulator.run import Run
from bench.scenario import load_scenario, stress_names
from bench.simulation.run import run_scenario
from loadgen.workloads import WORKLOADS

W_US = 500_000


def run(name: str, duration_s: int = 330, **changes: object) -> Run:
    return run_scenario(load_scenario(name, {"duration_s": duration_s, **changes}), keep_events=False)[0]


@pytest.mark.parametrize("name", stress_names())
def test_a_stress_scenario_runs_loses_nothing_and_follows_from_its_seed(name: str) -> None:
    one, again = (run(name, 60, policy="algorithm-2") for _ in range(2))
    events = WORKLOADS[load_scenario(name).load.workload].events(60).sum()
    assert len(one.latency_us) == events
    assert one.latency_us.tolist() == again.latency_us.tolist()
    assert one.changes == again.changes
