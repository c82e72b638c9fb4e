"""The source of the events of a report is checked before Spark starts."""

from pathlib import Path

import pytest
from published_runs import made_up_run, run_info

from contracts.connection import Connection
from report import ReportError
from report import topics as kafka
from report.run_info import EVENTS
from report.spark.job import report_run

SOMEWHERE = ""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run whose Kafka is gone."""
    monkeypatch.setattr(kafka, "ANSWER_TIMEOUT_S", 0.2)
    run_info(
        Connection(bootstrap_servers="127.0.0.1:1", namespace="gone"), made_up_run(9, 9.0, 0, 1), pipeline=True
    ).save(tmp_path)
    return tmp_path


def test_incomplete_parquet_files_are_not_used(folder: Path) -> None:
    (folder / EVENTS).mkdir()
    (folder / EVENTS / "part-00000.parquet").touch()
    with pytest.raises(ReportError, match=r"does not answer .*events\.parquet is incomplete: it has no _SUCCESS$"):
        report_run(folder, SOMEWHERE)
