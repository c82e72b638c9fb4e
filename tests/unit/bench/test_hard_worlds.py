"""Each hard world runs, loses nothing, follows from its seed, and is as hard as it says."""

import numpy as np
import pytest

from autoscaler.simulator.run import Run
from bench.scenario import load_scenario, world_names
from bench.simulation.run import run_scenario
from loadgen.workloads import WORKLOADS

W_US = 500_000


def run(name: str, seed: int = 1, **changes: object) -> Run:
    return run_scenario(load_scenario(name, {"seed": seed, "duration_s": 330, **changes}), keep_events=False)[0]


@pytest.mark.parametrize("name", world_names())
def test_each_runs_loses_nothing_and_follows_from_its_seed(name: str) -> None:
    aware, again = run(name), run(name)
    one, other = (run(name, seed, policy="static", initial_replicas=3) for seed in (1, 2))
    events = WORKLOADS[load_scenario(name).load.workload].events(330).sum()
    assert [len(each.latency_us) for each in (aware, one, other)] == [events] * 3
    assert aware.latency_us.tolist() == again.latency_us.tolist()
    assert aware.changes == again.changes != ()
    assert one.drained_us != other.drained_us, "another phase, or other times"


def test_buying_more_than_the_shared_limit_lets_through_helps_nobody() -> None:
    few, many, unlimited = (
        (run("shared-limit", policy="static", initial_replicas=count, **how).latency_us <= W_US).mean()
        for count, how in ((2, {}), (9, {}), (9, {"shared_limits": []}))
    )
    assert many < few + 0.01 < 0.95
    assert unlimited == 1.0


def test_the_loads_are_what_they_say() -> None:
    of = {name: WORKLOADS[name].counts() for name in WORKLOADS}
    assert of["flash-crowd"][[239, 240, 599, 600]].tolist() == [40, 800, 41, 800]
    assert [int((np.diff(of[f"square-{half}"]) != 0).sum()) for half in (30, 5, 1)] == [29, 179, 899]
    assert of["sawtooth"][[0, 59, 60]].tolist() == [46, 400, 46]
    assert of["heavy-tails"].mean() == pytest.approx(130, rel=0.1)
    assert np.median(of["heavy-tails"]) < 100 < 8 * 100 == of["heavy-tails"].max()
    shares = np.sort(of["zipf-100"].sum(axis=0) / of["zipf-100"].sum())[::-1]
    assert shares * np.arange(1, 100 + 1) == pytest.approx(shares[0], rel=0.1)
    assert (of["hot-partition"].max(), of["hot-partition"].shape) == (240, (900, 9))
