"""Each stress scenario runs, loses nothing and follows from its seed."""

import numpy as np
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


def test_more_replicas_than_a_shared_limit_serves_improve_nothing() -> None:
    few, many, unlimited = (
        (run("shared-limit", policy="static", initial_replicas=count, **how).latency_us <= W_US).mean()
        for count, how in ((2, {}), (9, {}), (9, {"shared_limits": []}))
    )
    assert many < few + 0.01 < 0.95
    assert unlimited == 1.0


def test_the_loads_have_the_stated_shapes() -> None:
    of = {name: WORKLOADS[name].counts() for name in WORKLOADS}
    assert of["flash-crowd"][[239, 240, 599, 600]].tolist() == [40, 800, 41, 800]
    assert [int((np.diff(of[f"square-{half}"]) != 0).sum()) for half in (30, 5, 1)] == [29, 179, 899]
    assert of["sawtooth"][[0, 59, 60]].tolist() == [46, 400, 46]
    assert of["heavy-tails"].mean() == pytest.approx(130, rel=0.1)
    assert np.median(of["heavy-tails"]) < 100 < 8 * 100 == of["heavy-tails"].max()
    shares = np.sort(of["zipf-100"].sum(axis=0) / of["zipf-100"].sum())[::-1]
    assert shares * np.arange(1, 100 + 1) == pytest.approx(shares[0], rel=0.1)
    assert (of["hot-partition"].max(), of["hot-partition"].shape) == (240, (900, 9))
