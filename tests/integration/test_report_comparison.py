"""Simulated runs reported on as live ones: judged as the simulator judges them, and against each other."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from spark_helpers import SPARK, spark

from bench.scenario import load_scenario
from bench.simulation.folder import write_run
from bench.simulation.run import SimulationResult, run_scenario
from bench.simulation.sent import sent_by
from contracts.topics import Topic
from report.comparison import compare
from report.figures import report_stored
from report.result import Result
from report.run_info import EVENTS, JOURNAL
from report.spark.events import EVENT, event_rows, journal_entries, typed_records
from tailpack.provenance import describe_simulated

pytestmark = [*SPARK, pytest.mark.long, pytest.mark.timeout(600)]
SECONDS = 180


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    yield from spark(tmp_path_factory.mktemp("spark"))


Simulated = dict[str, tuple[Path, SimulationResult]]


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Simulated:
    """Three minutes of w1 that grow steeply, under two policies, and once more with another seed."""
    found: Simulated = {}
    runs = tmp_path_factory.mktemp("runs")
    for name, policy, seed in (("a", "algorithm-2", 1), ("b", "linear", 1), ("c", "linear", 2)):
        told = {"policy": policy, "seed": seed, "duration_s": SECONDS, "split": "random", "startup_s": 8}
        scenario = load_scenario("w1", told)
        run, figures = run_scenario(scenario)
        info = describe_simulated(scenario, sent_by(scenario), run.drained_us, runs / name)
        found[name] = write_run(runs / name, run, info), figures
    return found


def test_a_simulated_run_is_judged_as_the_simulator_does(simulated: Simulated) -> None:
    shared = set(SimulationResult.__struct_fields__) & set(Result.__struct_fields__)
    unseen = {"moved_partitions"}  # under linear, whose group places partitions itself: no journal knows, live or not
    for folder, figures in (simulated["a"], simulated["b"]):  # c is judged when it is compared
        result = report_stored(folder)
        assert result.valid
        for name in shared - (unseen if figures.policy == "linear" else set()):
            assert getattr(result, name) == getattr(figures, name), name
        assert result.series.arrivals[:SECONDS] == tuple(_arrivals(folder))
    assert 0.5 < simulated["b"][1].in_sla < 0.9999, "an all too easy run shows nothing"


def test_columns_and_types_are_those_of_a_run_read_from_topics(
    simulated: Simulated, session: Any, tmp_path: Path
) -> None:
    folder = simulated["a"][0]
    kafka = session.createDataFrame([], KAFKA)
    records = typed_records(kafka, {"x.payments.settled": Topic.PAYMENTS_SETTLED})
    events = event_rows(records, None).select([field.name for field in EVENT])  # the others are of topics alone
    for name, frame in ((EVENTS, events), (JOURNAL, journal_entries(kafka))):
        frame.write.parquet(str(tmp_path / name))  # nullable as Spark reads it again
        wanted = session.read.parquet(str(tmp_path / name)).schema
        assert session.read.parquet(str(folder / name)).schema == wanted, name


def test_two_policies_under_the_same_events(simulated: Simulated) -> None:
    for folder, _ in simulated.values():
        report_stored(folder)
    found = compare([folder for folder, _ in simulated.values()])
    assert [(one.label, one.runs, one.pairs) for one in found.contestants] == [("algorithm-2", 1, 0), ("linear", 2, 1)]
    ours, theirs, other = simulated["b"][1], simulated["a"][1], found.contestants[1]
    assert other.differences["in_sla"].mean == ours.in_sla - theirs.in_sla
    assert other.differences["replica_minutes"].mean == ours.replica_minutes - theirs.replica_minutes
    assert found.problems == ()


KAFKA = (
    "topic string, partition int, offset bigint, key binary, value binary, timestamp timestamp, "
    "headers array<struct<key: string, value: binary>>"
)


def _events(folder: Path) -> dict[str, Any]:
    from pyarrow import parquet

    rows = parquet.read_table(folder / EVENTS, columns=["intended_us", "done_us"])
    return {name: rows[name].to_numpy() for name in rows.column_names}


def _arrivals(folder: Path) -> list[int]:
    return np.bincount(_events(folder)["intended_us"] // 1_000_000, minlength=SECONDS).tolist()
