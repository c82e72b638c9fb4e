"""Each stress scenario and each scenario with starts runs, loses no event, and depends only on its seed."""

import pytest

from bench.scenario import FOLDER, load_scenario, stress_names, table_in
from bench.simulation.run import run_scenario
from loadgen.workloads import find_workload


@pytest.mark.parametrize("name", [*stress_names(), *table_in(FOLDER / "starts.toml")])
def test_a_scenario_runs_loses_nothing_and_follows_from_its_seed(name: str) -> None:
    scenario = load_scenario(name, {"duration_s": 60, "policy": "algorithm-2", "faults": []})
    one, again = (run_scenario(scenario, keep_events=False)[0] for _ in range(2))
    assert len(one.latency_us) == find_workload(scenario.load.workload).events(60).sum()
    assert one.latency_us.tolist() == again.latency_us.tolist()
    assert one.changes == again.changes
