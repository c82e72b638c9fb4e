"""The folder of a simulated run has the same files as that of a live run."""

from pathlib import Path

import command_line
import pytest
from pyarrow import parquet

from autoscaler.simulator.run import Run
from bench.scenario import load_scenario
from bench.simulation.folder import EVENT_TYPES, write_run
from bench.simulation.run import SimulationResult, run_scenario
from contracts.validation import InvalidSettingsError
from report.run_info import RunInfo

INFO = RunInfo(
    run="kept", scenario={"name": "w1"}, policy="algorithm-2", seed=1, topology="payment-only", world="simulated",
    bootstrap_servers="", client_properties="", payment_partitions=5, latency_target_s=0.5, percentile=0.999,
    duration_s=240.0, started_us=0,
)  # fmt: skip


@pytest.fixture(scope="module")
def simulated() -> tuple[Run, SimulationResult]:
    return run_scenario(load_scenario("w1", {"policy": "algorithm-2", "duration_s": 240}))


def test_every_event_is_there_with_its_timeline(simulated: tuple[Run, SimulationResult], tmp_path: Path) -> None:
    run, figures = simulated
    events = parquet.read_table(write_run(tmp_path / "kept", run, INFO) / "events.parquet")
    assert dict(zip(events.column_names, map(str, events.schema.types), strict=True)) == EVENT_TYPES
    latency_us = events["done_us"].to_numpy() - events["intended_us"].to_numpy()
    assert (len(events), latency_us.max()) == (figures.events, (figures.max_s or 0) * 1e6)
    assert events["shipped_us"].null_count == len(events), "a simulated run ships nothing"
    assert set(events["replica"].to_pylist()) <= set(run.replica_names)


def test_explain_compares_again_what_a_simulated_run_has_compared(tmp_path: Path) -> None:
    run, _ = run_scenario(load_scenario("w1", {"policy": "tail-aware", "duration_s": 120}))
    folder = write_run(tmp_path / "kept", run, INFO)
    printed = command_line.run("explain", "last", "--run", folder, "--why-not", 5).stdout
    (line,) = [line for line in printed.splitlines() if "why not" in line and "late events; chosen: " in line]
    assert line.startswith("  why not   5 replicas, ")


def test_what_fails_on_the_way_leaves_nothing_half_written(
    simulated: tuple[Run, SimulationResult], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pyarrow.parquet.ParquetWriter.write_table", full)
    with pytest.raises(InvalidSettingsError, match="No space left on device"):
        write_run(tmp_path / "kept", simulated[0], INFO)
    assert list((tmp_path / "kept").iterdir()) == []
