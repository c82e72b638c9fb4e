"""What a person at a terminal sees of input, masters and disks that will not do: one line, and nothing half-written."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import psutil
import pytest
from small_disk import fill, small_disk
from stored_runs import stored_run

from report.page.page import PAGE_FILE
from report.result import RESULT_FILE, Result

pytestmark = [pytest.mark.spark, pytest.mark.timeout(420), pytest.mark.long]
DEADLINE_S: Final = 300.0
MARK: Final = "REPORT_OF_A_TEST"
"""In the environment of whatever the command starts."""
UNANSWERED_S: Final = 30.0
"""Of which an address gets 5; the rest is for Python to start on a busy machine."""


def refused(folder: Path, *words: str, wrapped: Sequence[str] = (), deadline_s: float = DEADLINE_S) -> str:
    """Ask for a report of `folder`; return the one line that refuses it.

    wrapped: command that runs the command. There is no output, a status, nothing half-written and no process left.
    """
    command = [*wrapped, sys.executable, "-m", "tailpack", "report", str(folder), "--format", "json", *words]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=deadline_s, check=False, env={**os.environ, MARK: str(folder)}
    )
    (line,) = done.stderr.strip().splitlines()
    assert (done.returncode, done.stdout) == (2, "")
    assert line.startswith("tailpack: the report failed: ")
    assert not list(folder.glob("*.tmp"))
    assert not [process.pid for process in psutil.process_iter() if _mark(process) == str(folder)], "all have ended"
    return line


def _mark(process: psutil.Process) -> str | None:
    try:
        return process.environ().get(MARK)
    except psutil.Error:
        return None


def test_a_master_that_nobody_answers_for_is_told_at_once(tmp_path: Path) -> None:
    stored_run(tmp_path)

    line = refused(tmp_path, "--master", "spark://127.0.0.1:1", deadline_s=UNANSWERED_S)

    assert line.endswith(
        "--master spark://127.0.0.1:1: nothing answers there (Connection refused); "
        "start it, or leave --master out to use this machine"
    )
    assert not (tmp_path / "spark.log").exists(), "no JVM was started"
    assert not (tmp_path / RESULT_FILE).exists()


@pytest.mark.parametrize(
    ("free", "file"), [(0, RESULT_FILE), (60_000, PAGE_FILE)], ids=["no room for the result", "no room for the page"]
)
def test_a_full_disk(tmp_path: Path, free: int, file: str) -> None:
    with small_disk(tmp_path / "disk", bytes_=1_000_000) as disk:
        stored_run(disk)
        fill(disk, but=free)

        line = refused(disk)

        assert line.endswith(f"{disk / file}: cannot be written (No space left on device)")
        assert not (disk / file).exists()
        if file == PAGE_FILE:
            assert Result.load(disk).events == 200


def test_events_that_may_not_be_read(tmp_path: Path) -> None:
    stored_run(tmp_path)
    away = tmp_path / "away"
    away.mkdir()
    shutil.move(tmp_path / "events.jsonl", away)
    (away / "events.jsonl").chmod(0)
    command = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
    if command and not shutil.which(command[0]):
        pytest.skip("root may read everything, and setpriv is not there to make it less")

    line = refused(tmp_path, "--events", f"file://{away}/events.jsonl", wrapped=command)

    assert "Permission denied" in line
    assert f"file://{away}/events.jsonl: " in line
