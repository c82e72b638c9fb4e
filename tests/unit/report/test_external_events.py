"""External events: the report equals that of their run, or one line names the reason why there is none."""

import shutil
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from stored_runs import STARTED_US, event_rows, stored_run, write_parquet

from contracts.journal import ReplicaChange, ReplicaChanged
from report import ReportError
from report.result import Result
from report.run_info import EVENTS, JOURNAL, RUN_FILE, RunInfo, run_of_files
from report.spark.job import report_files, report_run

LOCAL = ""
SLO = (0.012, 0.999)
REQUIRED = ("event_id", "intended_us", "done_us")


def uri(place: Path) -> str:
    return f"file://{place}"


def external(folder: Path, events: str) -> Result:
    return report_files(folder, run_of_files(events, *SLO, "my command"), LOCAL, events)


def bare_rows(**changes: Any) -> list[dict[str, Any]]:
    """Return rows with only the columns of an external source; `changes` apply to event 7."""
    rows = [{name: row[name] for name in REQUIRED} for row in event_rows()]
    rows[7] |= changes
    return rows


def test_copied_events_of_a_run_give_the_same_report(tmp_path: Path) -> None:
    home, away = tmp_path / "run", tmp_path / "away"
    home.mkdir()
    away.mkdir()
    changes = [
        ReplicaChanged(at_us=STARTED_US - 1_000_000 * before, replica="payment-0", change=kind)
        for before, kind in ((2, ReplicaChange.REQUESTED), (1, ReplicaChange.READY))
    ]
    stored_run(home, journal_entries=tuple(map(msgspec.json.encode, changes)), done_us=None)
    msgspec.structs.replace(RunInfo.load(home), latency_target_s=0.012).save(home)
    expected = report_run(home, LOCAL)
    shutil.move(home / EVENTS, away)
    shutil.move(home / JOURNAL, away)

    assert report_files(home, RunInfo.load(home), LOCAL, uri(away / EVENTS)) == expected, (
        "the journal next to them is found"
    )
    (tmp_path / "alone").mkdir()
    shutil.move(away / EVENTS, tmp_path / "alone")
    elsewhere = str(tmp_path / "alone" / EVENTS), str(away / JOURNAL)
    assert report_files(home, RunInfo.load(home), LOCAL, *elsewhere) == expected
    assert (expected.lost, expected.replica_minutes is None) == (1, False)
    assert expected.tail is not None
    assert expected.tail.late > 1
    assert {path.name for path in home.iterdir()} == {RUN_FILE, "result.json"}


def test_external_events_need_only_an_id_and_two_times(tmp_path: Path) -> None:
    rows = bare_rows(done_us=None)
    write_parquet(tmp_path / "own events.parquet", rows)
    (tmp_path / "parts").mkdir()
    for part in (0, 1):
        write_parquet(tmp_path / "parts" / f"{part}.parquet", rows[part::2])
    folder = tmp_path / "new" / "report"

    found = external(folder, uri(tmp_path / "own events.parquet"))

    assert (found.events, found.lost, found.duration_s, found.replica_minutes) == (200, 1, 4.0, None)
    assert (found.latency_target_s, found.scenario) == (0.012, f"events {uri(tmp_path)}/own events.parquet")
    late = sum(row["done_us"] is None or row["done_us"] - row["intended_us"] > 12_000 for row in rows)
    assert round((1 - found.in_sla) * 200) == late
    assert (found.world, found.tail, found.effects, found.topics) == ("unknown", None, None, ()), (
        "unknown without their columns"
    )
    assert found.cost is not None
    assert found.cost.packing_replica_minutes is None
    unknown = ("scale_ups", "moved_partitions", "refused", "duplicates", "dead_letters", "order_violations")
    assert [getattr(found, name) for name in unknown] == [None] * len(unknown)
    assert found.verdict.endswith("; 1 event lost.")
    assert found.provenance.command == "my command"
    assert not (folder / RUN_FILE).exists(), "a later report can use another target"
    again = external(folder, uri(tmp_path / "parts"))
    assert msgspec.structs.replace(again, run=found.run, scenario=found.scenario) == found


def test_only_a_report_by_spark_needs_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "py4j.protocol", None)
    write_parquet(tmp_path / "own.parquet", bare_rows())
    assert external(tmp_path / "new", str(tmp_path / "own.parquet")).events == 200
    with pytest.raises(ReportError, match=r"needs Spark, but pyspark is not installed: .*pip install '.\[spark\]'"):
        report_run(tmp_path / "new", "local[1]")


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("file:///nowhere/events.parquet", "no such file or folder"),
        ("ftp://host/w1", "cannot be read .Unrecognized filesystem type in URI"),
    ],
)
def test_a_path_that_does_not_exist_is_refused(tmp_path: Path, place: str, message: str) -> None:
    refused(tmp_path, place, message)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"done_us": "soon"}, "done_us is string, not an integer .times are integer microseconds since 1970"),
        ({"intended_us": None}, "1 of 200 rows have no intended_us"),
        ({"intended_us": 1_000_000_000_000_000}, "events span 8,102 days"),
        ({"unknown_version": 2}, "schema version 2, but only 1 is supported"),
    ],
)
def test_rows_without_a_report_are_refused(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    rows = bare_rows(**changes)
    if isinstance(changes.get("done_us"), str):
        rows = [row | changes for row in rows]  # a column has one type
    write_parquet(tmp_path / "events.parquet", rows[7:] + rows[:7])
    refused(tmp_path, uri(tmp_path / "events.parquet"), message)


def test_files_with_other_content_are_refused(tmp_path: Path) -> None:
    write_parquet(tmp_path / "other.parquet", [{"when": 1}])
    refused(tmp_path, uri(tmp_path / "other.parquet"), "missing columns: done_us, event_id, intended_us")
    (tmp_path / "half.parquet").write_bytes(b"PAR1 half of it")
    refused(tmp_path, uri(tmp_path / "half.parquet"), "cannot be read .*Parquet")
    (tmp_path / "half" / "_temporary").mkdir(parents=True)
    refused(tmp_path, uri(tmp_path / "half"), "no Parquet file, or it is still being written")


def refused(folder: Path, place: str, message: str) -> None:
    """Assert that events at `place` are refused in one line that begins with it, and leave no files."""
    with pytest.raises(ReportError, match=message) as error:
        external(folder / "out", place)
    assert str(error.value).startswith(f"{place}: ")
    assert "\n" not in str(error.value)
    assert not list((folder / "out").iterdir())
