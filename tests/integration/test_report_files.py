"""Events that lie elsewhere: the report is that of the topics they came from, or one line says why there is none."""

import gzip
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from kafka_helpers import create_topics, produce
from published_runs import PARTITIONS, made_up_run, publish, run_info
from spark_helpers import SPARK, spark
from stored_runs import STARTED_US, event_rows, write_parquet

from contracts.connection import Connection
from contracts.journal import ReplicaChange, ReplicaChanged
from contracts.topics import Topic
from report import ReportError
from report.run_info import EVENTS, JOURNAL, RUN_FILE
from report.spark.files import Files
from report.spark.job import Cluster, report_files, report_run
from report.stored import Promise
from tailpack.local.jars import ensure

pytestmark = [pytest.mark.kafka, *SPARK, pytest.mark.long]
HERE = Cluster("local[2]", [])
PROMISE = Promise(0.012, 0.999)
BARE = ("event_id", "intended_us", "done_us")


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    yield from spark(tmp_path_factory.mktemp("spark"))


def uri(place: Path) -> str:
    return f"file://{place}"


def bare_rows(**changes: Any) -> list[dict[str, Any]]:
    """What somebody else knows of his events; `changes` are of event 7."""
    rows = [{name: row[name] for name in BARE} for row in event_rows()]
    rows[7] |= changes
    return rows


@pytest.mark.timeout(420)
def test_parquet_and_json_lines_elsewhere_give_the_report_of_the_topics(
    session: Any, kafka: str, namespace: str, tmp_path: Path
) -> None:
    connection, run = Connection(bootstrap_servers=kafka, namespace=namespace), made_up_run(400, 100.0, STARTED_US, 5)
    create_topics(kafka, namespace, PARTITIONS)
    publish(connection, run, pipeline=True, copies=lambda topic, k: int(topic is Topic.ORDERS_PLACED or k != 3))
    changes = [
        ReplicaChanged(at_us=STARTED_US - 1_000_000 * before, replica=name, change=kind)
        for before, (name, kind) in enumerate(
            [(f"payment-{n}", kind) for n in (0, 1) for kind in (ReplicaChange.READY, ReplicaChange.REQUESTED)], 1
        )
    ]
    entries = [msgspec.json.encode(change) for change in reversed(changes)]
    produce(kafka, namespace, Topic.JOURNAL, entries)
    home, away, lines = tmp_path / "run", tmp_path / "away", tmp_path / "lines"
    home.mkdir()
    msgspec.structs.replace(run_info(connection, run, pipeline=True), latency_target_s=0.012).save(home)
    expected = report_run(home, Cluster("local[2]", [ensure("spark")]))
    away.mkdir()
    shutil.move(home / EVENTS, away)
    shutil.move(home / JOURNAL, away)

    assert report_run(home, HERE, files=Files(uri(away / EVENTS))) == expected, "the journal beside them is found"

    session.read.parquet(uri(away / EVENTS)).repartition(2).write.option("compression", "gzip").json(uri(lines))
    (tmp_path / "journal.jsonl").write_bytes(b"\n".join(entries))
    assert report_run(home, HERE, files=Files(uri(lines), uri(tmp_path / "journal.jsonl"))) == expected
    assert expected.lost == 1
    assert expected.tail is not None
    assert expected.tail.late > 1
    assert expected.replica_minutes
    assert not (home / EVENTS).exists()


def test_a_stranger_needs_an_id_and_two_times(session: Any, tmp_path: Path) -> None:
    rows = bare_rows(done_us=None)
    write_parquet(tmp_path / "his events.parquet", rows)
    with gzip.open(tmp_path / "events.json.gz", "wt") as packed:
        packed.writelines(json.dumps(row) + "\n" for row in rows)
    folder = tmp_path / "new" / "report"

    found = report_files(folder, Files(uri(tmp_path / "his events.parquet")), PROMISE, HERE, command="as I said")

    assert (found.events, found.lost, found.duration_s, found.replica_minutes) == (200, 1, 4.0, None)
    assert (found.latency_target_s, found.scenario) == (0.012, f"events {uri(tmp_path)}/his events.parquet")
    late = sum(row["done_us"] is None or row["done_us"] - row["intended_us"] > 12_000 for row in rows)
    assert round((1 - found.in_sla) * 200) == late
    assert (found.world, found.tail, found.effects, found.topics) == ("unknown", None, None, ()), "nobody can know"
    assert found.cost is not None
    assert found.cost.packing_replica_minutes is None
    unknown = ("scale_ups", "moved_partitions", "refused", "duplicates", "dead_letters", "order_violations")
    assert [getattr(found, name) for name in unknown] == [None] * len(unknown)
    assert found.verdict.endswith("; 1 event lost.")
    assert found.provenance.command == "as I said"
    assert not (folder / RUN_FILE).exists(), "asked again with another target it is judged by that"
    again = report_files(folder, Files(uri(tmp_path / "*.json.gz")), PROMISE, HERE, command="as I said")
    assert msgspec.structs.replace(again, run=found.run, scenario=found.scenario) == found


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("file:///nowhere/events.parquet", "no such file or folder"),
        ("s3a://bucket/w1", r"no file system for s3a:// here; add it with --jars \(org.apache.hadoop:hadoop-aws:3"),
        ("hdfs://127.0.0.1:1/w1", "cannot be read .Connection refused"),
    ],
)
def test_a_path_that_leads_nowhere(session: Any, tmp_path: Path, place: str, said: str) -> None:
    refused(tmp_path, place, said)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"done_us": "soon"}, "done_us is string where bigint should be .times are whole microseconds since 1970"),
        ({"intended_us": None}, "1 of 200 rows have no intended_us"),
        ({"intended_us": 1_000_000_000_000_000}, "events lie 8,102 days apart"),
        ({"unknown_version": 2}, "records of schema version 2 beside 1"),
    ],
)
def test_rows_that_cannot_be_judged(session: Any, tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    rows = bare_rows(**changes)
    if isinstance(changes.get("done_us"), str):
        rows = [row | changes for row in rows]  # a column has one type
    write_parquet(tmp_path / "events.parquet", rows[7:] + rows[:7])
    refused(tmp_path, uri(tmp_path / "events.parquet"), said)


def test_files_that_hold_something_else(session: Any, tmp_path: Path) -> None:
    write_parquet(tmp_path / "other.parquet", [{"when": 1}])
    refused(tmp_path, uri(tmp_path / "other.parquet"), "it lacks done_us, event_id, intended_us; is it the file of")
    (tmp_path / "table.csv").write_text("event_id,intended_us,done_us\na,1,2\n")
    refused(tmp_path, uri(tmp_path / "table.csv"), "it is CSV, which has no types; a report reads Parquet or JSON")
    (tmp_path / "half.parquet").write_bytes(b"PAR1 half of it")
    refused(tmp_path, uri(tmp_path / "half.parquet"), "not a Parquet file")
    (tmp_path / "half" / "_temporary").mkdir(parents=True)
    refused(tmp_path, uri(tmp_path / "half"), "it is not whole: _temporary is there")


def refused(folder: Path, place: str, said: str) -> None:
    """Assert that events at `place` are refused in one line that begins with it, and that nothing is made of them."""
    with pytest.raises(ReportError, match=said) as error:
        report_files(folder / "out", Files(place), PROMISE, HERE)
    assert str(error.value).startswith(f"{place}: ")
    assert "\n" not in str(error.value)
    assert {made.name for made in (folder / "out").iterdir()} <= {"spark.log"}
