"""A report computed in this process and one computed by Spark's workers are equal to the last digit."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from kafka_helpers import create_topics, produce
from published_runs import PARTITIONS, made_up_run, publish, run_info
from spark_helpers import SPARK, spark

from bench.scenario import load_scenario
from bench.simulation.folder import write_run
from bench.simulation.run import run_scenario
from bench.simulation.sent_events import build_events
from contracts.connection import Connection
from contracts.journal import ReplicaChange, ReplicaChanged
from contracts.topics import Topic
from report import ReportError, columns
from report.result import Result
from report.run_info import EVENTS, JOURNAL, RUN_FILE
from report.spark import job
from report.spark.job import report_run
from report.topics import RunReader, report_here
from tailpack.local.broker import Broker
from tailpack.provenance import describe_simulated

pytestmark = [pytest.mark.kafka, *SPARK, pytest.mark.long, pytest.mark.timeout(600)]
STARTED_US = 1_700_000_000_000_000


@pytest.fixture(scope="module", autouse=True)
def _session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    yield from spark(tmp_path_factory.mktemp("spark"))


def live(kafka: str, namespace: str, folder: Path) -> None:
    """A pipeline run in its topics: a lost order, doubled and missing effects, a death; one event in six is late."""
    connection = Connection(bootstrap_servers=kafka, namespace=namespace)
    run = made_up_run(3_000, rate=180.0, started_us=STARTED_US, seed=3)
    create_topics(kafka, namespace, PARTITIONS)
    copies = {(Topic.PAYMENTS_SETTLED, 7): 2, (Topic.SHIPMENTS_SCHEDULED, 33): 2, (Topic.NOTIFICATIONS_SENT, 44): 0}
    copies |= dict.fromkeys(((topic, 9) for topic in list(Topic)[2:]), 0)
    publish(connection, run, pipeline=True, copies=lambda topic, k: copies.get((topic, k), 1))
    changes = [(-3, 0, ReplicaChange.REQUESTED), (-2, 0, ReplicaChange.READY), (5, 1, ReplicaChange.DIED)]
    entries = [
        ReplicaChanged(at_us=STARTED_US + at_s * 1_000_000, replica=f"payment-{number}", change=change)
        for at_s, number, change in changes
    ]
    produce(kafka, namespace, Topic.JOURNAL, [msgspec.json.encode(entry) for entry in entries])
    msgspec.structs.replace(run_info(connection, run, pipeline=True), latency_target_s=0.012).save(folder)


def simulated(folder: Path) -> None:
    """Simulate two minutes of w1 with steep growth, in which a replica dies unannounced."""
    changes = {"policy": "algorithm-2", "duration_s": 120, "split": "random", "startup_s": 8, "failures_s": (60.0,)}
    scenario = load_scenario("w1", {**changes, "failures_known": False})
    run, _ = run_scenario(scenario)
    write_run(folder, run, describe_simulated(scenario, build_events(scenario), run.drained_us, folder))


@pytest.mark.parametrize("kind", ["live", "simulated"])
def test_the_report_without_spark_equals_the_report_with_spark(
    kind: str, kafka: str, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kind == "live":
        live(kafka, namespace, tmp_path)
    else:
        simulated(tmp_path)
        monkeypatch.setattr(columns, "EVENTS_PER_PIECE", 1_000)
    here = report_here(tmp_path)
    if kind == "live":  # Spark reads the topics as well
        shutil.rmtree(tmp_path / EVENTS)

    handed_out = report_run(tmp_path, "local[2]")

    assert handed_out == here == Result.load(tmp_path)
    assert here.tail is not None
    assert here.events > here.tail.late > 100, "a run without late events would test nothing"
    assert {path.name for path in tmp_path.iterdir()} == {RUN_FILE, EVENTS, JOURNAL, "result.json", "spark.log"}


@pytest.mark.parametrize("master", ["", "local[2]"])
def test_a_kafka_outage_during_the_read_leaves_no_partial_files(
    private_broker: Broker, namespace: str, tmp_path: Path, master: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = str(private_broker.address())
    connection = Connection(bootstrap_servers=address, namespace=namespace)
    run = made_up_run(10, 10.0, STARTED_US, 1)
    create_topics(address, namespace, PARTITIONS)
    publish(connection, run, pipeline=False)
    run_info(connection, run, pipeline=False).save(tmp_path)

    def stopping(write: Any) -> Any:
        return lambda *arguments, **more: [private_broker.stop(), write(*arguments, **more)][1]

    monkeypatch.setattr(job, "write_events", stopping(job.write_events))
    monkeypatch.setattr(RunReader, "write_events", stopping(RunReader.write_events))
    with pytest.raises(ReportError, match=r"could not read the run|does not answer") as refused:
        report_run(tmp_path, master)

    assert "\n" not in str(refused.value)
    assert not [place for place in tmp_path.iterdir() if place.name.startswith((EVENTS, "result.json"))]
