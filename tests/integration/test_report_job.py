"""The report job on a run with each kind of error, and on input that it must refuse."""

from pathlib import Path

import msgspec
import pytest
from kafka_helpers import create_topics, produce, read_all
from published_runs import PARTITIONS, MadeUpRun, made_up_run, publish, run_info
from stored_runs import STARTED_US, stored_run

from contracts.connection import Connection
from contracts.events import DeadLetter
from contracts.journal import PartitionState, PlanWritten, ReplicaChange, ReplicaChanged, TickRecord
from contracts.plan import plan_key
from contracts.topics import PAYMENT_GROUP, Topic, qualified
from report import ReportError
from report.result import Effects, Result
from report.run_info import RunInfo
from report.spark import Task
from report.spark.job import report_run
from tailpack.reporting import write_report

pytestmark = pytest.mark.kafka
LOST, SETTLED_TWICE, SHIPPED_TWICE, NEVER_NOTIFIED, REFUSED = 11, 22, 33, 44, 55


def copies(topic: Topic, k: int) -> int:
    """How often event k of the damaged run appears on `topic`."""
    if k in {LOST, REFUSED}:
        return int(topic is Topic.ORDERS_PLACED)
    if (topic, k) in {(Topic.PAYMENTS_SETTLED, SETTLED_TWICE), (Topic.SHIPMENTS_SCHEDULED, SHIPPED_TWICE)}:
        return 2
    return int((topic, k) != (Topic.NOTIFICATIONS_SENT, NEVER_NOTIFIED))


def damaged_run(kafka: str, namespace: str, folder: Path) -> MadeUpRun:
    """100 orders in 2 s, five of them with an error; two replicas, the second for half a second."""
    connection = Connection(bootstrap_servers=kafka, namespace=namespace)
    run = made_up_run(100, rate=50.0, started_us=STARTED_US, seed=5)
    create_topics(kafka, namespace, PARTITIONS)
    publish(connection, run, pipeline=True, copies=copies)
    partition, offset = place_of(kafka, namespace, REFUSED)
    letter = DeadLetter(
        letter_id="x", stage="order", topic=qualified(namespace, Topic.ORDERS_PLACED), partition=partition,
        offset=offset, reasons=("currency: unknown",), order_id=None, payload="", at_us=STARTED_US,
    )  # fmt: skip
    produce(kafka, namespace, Topic.DEAD_LETTERS, [msgspec.json.encode(letter)])
    key = plan_key(PAYMENT_GROUP.group_in(namespace), PAYMENT_GROUP.topic_in(namespace))
    for one in (key, plan_key("another", PAYMENT_GROUP.topic_in(namespace))):
        produce(kafka, namespace, Topic.JOURNAL, [msgspec.json.encode(entry) for entry in journal()], key=one)
    run_info(connection, run, pipeline=True).save(folder)
    return run


def place_of(kafka: str, namespace: str, k: int) -> tuple[int, int]:
    """Return partition and offset of order k."""
    found = [r for r in read_all(kafka, namespace, Topic.ORDERS_PLACED) if r.key() == f"o-{k:08d}".encode()]
    return found[0].partition(), found[0].offset()


def journal() -> list[object]:
    def change(replica: str, kind: ReplicaChange, at_s: float) -> ReplicaChanged:
        return ReplicaChanged(at_us=STARTED_US + int(at_s * 1e6), replica=replica, change=kind)

    return [
        change("payment-0", ReplicaChange.REQUESTED, -3.0), change("payment-0", ReplicaChange.READY, -2.0),
        change("payment-1", ReplicaChange.REQUESTED, 0.5),
        PlanWritten(
            at_us=STARTED_US + 600_000, epoch=2, action="up", reason="payment-0 exceeds 0.9·μ",
            replicas=("payment-0", "payment-1"), assignment=None, moved=2,
        ),
        TickRecord(
            at_us=STARTED_US + 1_100_000, tick=1, policy="static", action="no-change", reason="", service_rate=198.0,
            partitions=(PartitionState(partition=0, arrival_rate=9.0, lag=4, owner="payment-0"),), ready_replicas=1,
            requested_replicas=2, planned_replicas=2, epoch=2,
        ),
        change("payment-1", ReplicaChange.LEFT, 1.0),
    ]  # fmt: skip


def test_each_event_of_a_damaged_run_is_counted(kafka: str, namespace: str, tmp_path: Path) -> None:
    damaged_run(kafka, namespace, tmp_path)

    result = report_run(tmp_path, "")

    assert (result.events, result.lost, result.refused, result.dead_letters) == (99, 1, 1, 1)
    assert result.effects == Effects(orders=99, exactly_once=96, missing=2, doubled=1)
    duplicates = {topic.topic: topic.duplicates for topic in result.topics if topic.duplicates}
    assert duplicates == {"payments.settled": 1, "shipments.scheduled": 1}
    assert result.order_violations == 0
    assert result.in_sla == 98 / 99
    assert not result.slo_met
    assert result.valid, result.problems
    assert result.replica_minutes == pytest.approx(2.5 / 60)
    assert (result.scale_ups, result.moved_partitions) == (1, 2)
    assert result.series.requested_replicas[:2] == (1, 1)
    assert result.series.lag[:2] == (None, 4)
    assert Result.load(tmp_path) == result

    away = msgspec.structs.replace(RunInfo.load(tmp_path), bootstrap_servers="127.0.0.1:1")
    away.save(tmp_path)
    assert report_run(tmp_path, "") == result, "the Parquet files give the same result without the broker"


def test_invalid_input_is_refused_in_one_line(kafka: str, namespace: str, tmp_path: Path) -> None:
    with pytest.raises(ReportError, match=r"run\.json: No such file"):
        report_run(tmp_path, "")

    (tmp_path / "run.json").write_text('{"run": "half')
    with pytest.raises(ReportError, match=r"run\.json: not a valid run description"):
        report_run(tmp_path, "")

    run = run_info(Connection(bootstrap_servers=kafka, namespace=namespace), made_up_run(9, 9.0, 0, 1), pipeline=True)
    run.save(tmp_path)
    with pytest.raises(ReportError, match="no such topic"):
        report_run(tmp_path, "")

    msgspec.structs.replace(run, started_us=None).save(tmp_path)
    with pytest.raises(ReportError, match="the load never started"):
        report_run(tmp_path, "")


def test_a_journal_of_another_version_or_broken_is_refused(tmp_path: Path) -> None:
    (tmp_path / "newer").mkdir()
    entry = msgspec.structs.replace(journal()[0], v=99)  # type: ignore[type-var]
    stored_run(tmp_path / "newer", journal_entries=(msgspec.json.encode(entry),))
    with pytest.raises(ReportError, match=r"entry 0 .*version 99"):
        report_run(tmp_path / "newer", "")

    (tmp_path / "half").mkdir()
    stored_run(tmp_path / "half", journal_entries=(msgspec.json.encode(journal()[0])[:40],))
    with pytest.raises(ReportError, match="entry 0 is not a journal entry"):
        report_run(tmp_path / "half", "")


@pytest.mark.spark
def test_the_job_of_a_large_run_gives_the_same_report(tmp_path: Path) -> None:
    stored_run(tmp_path)
    expected = report_run(tmp_path, "")
    (tmp_path / "result.json").unlink()
    write_report(Task(folder=str(tmp_path), master="local[1]"))
    assert Result.load(tmp_path) == expected


def test_a_full_disk_leaves_no_half_result(tmp_path: Path) -> None:
    stored_run(tmp_path)
    (tmp_path / "result.json.tmp").symlink_to("/dev/full")

    with pytest.raises(ReportError, match=r"result\.json: cannot be written \(No space left on device\)"):
        report_run(tmp_path, "")

    assert not [place for place in tmp_path.iterdir() if place.name.startswith("result.json")]
