"""Simulated runs through the same Spark as live ones: judged as the simulator judges them, and against each other."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from spark_helpers import SPARK, spark

from bench.scenario import load_scenario
from bench.simulation.folder import write_run
from bench.simulation.result import SimulationResult
from bench.simulation.run import run_scenario
from bench.simulation.sent import sent_by
from contracts.topics import Topic
from report.comparison import RunComparison
from report.result import Result
from report.run_info import RunInfo
from report.spark import ReportError
from report.spark.comparison_job import cells_of, compare, entrant
from report.spark.events import EVENT, event_rows, journal_entries, typed_records
from report.spark.job import Cluster, report_run
from report.spark.read import EVENTS, JOURNAL
from report.statistics import cut_into_cells
from tailpack.local.jars import ensure
from tailpack.provenance import describe_simulated

pytestmark = [*SPARK, pytest.mark.long, pytest.mark.timeout(600)]
SECONDS = 180


@pytest.fixture(scope="module", autouse=True)
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    yield from spark(tmp_path_factory.mktemp("spark"))


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    return Cluster("local[2]", [ensure("spark")])


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


def test_spark_judges_a_simulated_run_as_the_simulator_does(simulated: Simulated, cluster: Cluster) -> None:
    shared = set(SimulationResult.__struct_fields__) & set(Result.__struct_fields__)
    unseen = {"moved_partitions"}  # under linear, whose group places partitions itself: no journal knows, live or not
    for folder, figures in (simulated["a"], simulated["b"]):  # c is judged when it is compared
        result = report_run(folder, cluster)
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


def test_spark_and_numpy_cut_a_run_alike(simulated: Simulated, cluster: Cluster, session: Any) -> None:
    one = entrant(simulated["b"][0], cluster)
    rows = _events(one.folder)
    latency_us = rows["done_us"] - rows["intended_us"]
    found = cells_of(one, session.read.parquet(str(one.folder / EVENTS)), session)
    floor_us = round((one.result.p50_s or 0) * 1e6)
    wanted = cut_into_cells(
        rows["intended_us"], latency_us, found.paid_s, length_s=1, latency_target_s=0.5, floor_us=floor_us
    )
    assert found.paid_s.sum() / 60 == pytest.approx(one.result.replica_minutes)
    for name in ("events", "in_sla", "edges_s", "within"):
        assert (getattr(found, name) == getattr(wanted, name)).all(), name
    assert found.within.sum() == len(latency_us)
    assert len(found.events) == SECONDS


@pytest.fixture(scope="module")
def compared(simulated: Simulated, cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> RunComparison:
    folders = [simulated[name][0] for name in "abc"]
    return compare(folders, tmp_path_factory.mktemp("comparison"), cluster, command="tailpack report compare a b c")


def test_two_policies_under_the_same_events(simulated: Simulated, compared: RunComparison) -> None:
    (scenario,) = compared.scenarios
    assert [(one.label, one.runs) for one in scenario.contestants] == [("algorithm-2", 1), ("linear", 2)]
    (found,) = scenario.differences
    ours, theirs = simulated["b"][1], simulated["a"][1]
    assert found.in_sla.mean == ours.in_sla - theirs.in_sla
    assert found.replica_minutes.mean == ours.replica_minutes - theirs.replica_minutes
    assert found.in_sla.low <= found.in_sla.mean <= found.in_sla.high


def test_every_event_meets_itself(simulated: Simulated, compared: RunComparison) -> None:
    same = compared.scenarios[0].differences[0].same_events
    assert same is not None
    a, b = (_events(simulated[name][0]) for name in "ab")
    late_a, late_b = (run["done_us"] - run["intended_us"] > 500_000 for run in (a, b))
    assert (same.paired, same.of) == (len(late_a), len(late_b))
    assert same.late_in_both == (late_a & late_b).sum()
    assert same.late_only_here == (late_b & ~late_a).sum()
    assert same.late_only_in_reference == (late_a & ~late_b).sum()
    assert same.mean_difference_s == (b["done_us"] - a["done_us"]).sum() / len(late_a) / 1e6
    assert compared.problems == ()


def test_runs_of_other_events_are_told_to_be_so(simulated: Simulated, cluster: Cluster, tmp_path: Path) -> None:
    folder = simulated["c"][0]
    told = RunInfo.load(folder)
    renamed = tmp_path / "renamed"
    renamed.mkdir()
    for name in (EVENTS, JOURNAL, "result.json"):
        (renamed / name).symlink_to(folder / name)
    msgspec.structs.replace(told, seed=1).save(renamed)
    found = compare([simulated["a"][0], renamed], tmp_path, cluster, command="")
    assert len(found.problems) == 1
    assert "did not meet the same events" in found.problems[0]


def test_equal_runs_give_equal_bytes(simulated: Simulated, cluster: Cluster, tmp_path: Path) -> None:
    folders = [simulated[name][0] for name in "ab"]
    one, again = (compare(folders, tmp_path, cluster, command="x") for _ in range(2))
    assert msgspec.json.encode(one) == msgspec.json.encode(again)


def test_what_cannot_be_compared_is_one_line(simulated: Simulated, cluster: Cluster, tmp_path: Path) -> None:
    with pytest.raises(ReportError, match="nothing to compare: no two of these runs met the same load"):
        compare([simulated["b"][0], simulated["c"][0]], tmp_path, cluster, command="")
    with pytest.raises(ReportError, match="No such file or directory; name the folder of a run"):
        compare([simulated["a"][0], tmp_path / "nowhere"], tmp_path, cluster, command="")
    a = simulated["a"][0]
    torn = tmp_path / "torn"
    shutil.copytree(a, torn)
    msgspec.structs.replace(RunInfo.load(a), policy="linear").save(torn)
    (torn / EVENTS / "part-00000.parquet").write_bytes(b"PAR1 and then nothing")
    with pytest.raises(ReportError, match=r"^Spark could not read the runs \(.*\n?.*spark\.log says more$"):
        compare([a, torn], tmp_path, cluster, command="")


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
