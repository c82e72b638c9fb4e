"""The report of a simulated run has the figures of the simulator."""

from pathlib import Path

import numpy as np
import pytest
from pyarrow import parquet

from bench.scenario import load_scenario
from bench.simulation.folder import write_run
from bench.simulation.run import SimulationResult, run_scenario
from bench.simulation.sent_events import build_events
from report.figures import report_stored
from report.result import Result
from report.run_info import EVENTS
from tailpack.provenance import describe_simulated

SECONDS = 180


@pytest.mark.parametrize("policy", ["algorithm-2", "linear"])
def test_a_simulated_run_is_judged_as_the_simulator_does(tmp_path: Path, policy: str) -> None:
    changes = {"policy": policy, "duration_s": SECONDS, "split": "random", "startup_s": 8}
    scenario = load_scenario("w1", changes)
    run, figures = run_scenario(scenario)
    folder = write_run(tmp_path, run, describe_simulated(scenario, build_events(scenario), run.drained_us, tmp_path))
    result = report_stored(folder)
    assert result.valid
    shared = set(SimulationResult.__struct_fields__) & set(Result.__struct_fields__)
    if policy == "linear":  # its group places partitions itself: no journal knows who moved
        shared -= {"moved_partitions"}
        assert 0.5 < figures.in_sla < 0.9999, "an all too easy run shows nothing"
    for name in shared:
        assert getattr(result, name) == getattr(figures, name), name
    intended_us = parquet.read_table(folder / EVENTS, columns=["intended_us"])["intended_us"].to_numpy()
    arrivals = np.bincount(intended_us // 1_000_000, minlength=SECONDS)
    assert result.series.arrivals[:SECONDS] == tuple(arrivals.tolist())
