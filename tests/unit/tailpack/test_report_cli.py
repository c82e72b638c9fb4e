"""`tailpack report` and `tailpack report compare`, as a user or a script runs them, without Spark."""

import functools
import json
import re
import subprocess
import sys
from pathlib import Path

import command_line
import pytest
from small_report import small_result, small_run
from stored_runs import event_rows, write_parquet

from report.spark import Task
from tailpack import reporting
from tailpack.errors import TailpackError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return small_run(tmp_path / "small")


run = functools.partial(command_line.run, "report")


def test_a_report_is_computed_unless_kept_is_given(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    masters: list[str] = []

    def written(task: Task, **_: object) -> None:
        masters.append(task.master)
        small_result(run="again").save(Path(task.folder))

    monkeypatch.setattr(reporting, "write_report", written)
    assert json.loads(run(folder, "--kept", "--json").stdout)["run"] == "small"
    assert masters == []
    assert json.loads(run(folder, "--json", "--master", "local[1]").stdout)["run"] == "again"
    assert masters == ["local[1]"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("new", "--events", "e"), "new has no run.json"),
        (("small", "--events", "e", "--latency-target-s", "1"), "leave out --latency-target-s"),
        (("small", "--kept", "--events", "e"), "--kept cannot be combined with --events"),
        (("small", "--kept", "--format", "csv", "--table", "x"), "--table x: no such table; choose one of run, causes"),
    ],
)
def test_options_that_contradict_each_other_are_rejected(
    folder: Path, words: tuple[str, ...], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder.parent)
    with pytest.raises(TailpackError, match=re.escape(message)):
        run(*words)
    assert not Path("new").exists()


def test_a_report_on_files_needs_no_java(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(folder))
    write_parquet(folder / "own.parquet", event_rows())
    assert run(folder.parent / "new", "--events", folder / "own.parquet", "--latency-target-s", "9").exit_code == 0
    with pytest.raises(TailpackError, match="Java 17 or newer is required, but JAVA_HOME"):
        run(folder, "--master", "local[1]")


def test_a_package_of_an_extra_that_is_missing_is_one_line() -> None:
    code = "import sys; sys.modules['jinja2'] = None; from tailpack.cli.main import main; main()"
    ended = subprocess.run([sys.executable, "-c", code, "report"], capture_output=True, text=True, check=False)
    message = "tailpack: jinja2 is not installed: in a clone, pip install '.[bench]'\n"
    assert (ended.returncode, ended.stderr) == (2, message)


def test_a_full_disk_behind_standard_output_is_one_line(folder: Path) -> None:
    command = [sys.executable, "-m", "tailpack", "report", str(folder), "--kept", "--format", "json"]
    with open("/dev/full", "wb") as full:
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert ended.returncode == 2
    assert ended.stderr.endswith("No space left on device\n")
    assert "Traceback" not in ended.stderr


def test_a_missing_or_invalid_result_is_reported_with_kept(folder: Path) -> None:
    (folder / "result.json").write_text('{"run": 7}')
    with pytest.raises(TailpackError, match=r"result\.json"):
        run(folder, "--kept")
    (folder / "result.json").unlink()
    with pytest.raises(TailpackError, match=r"no result\.json; leave out --kept"):
        run(folder, "--kept")


def test_runs_are_compared_in_a_table_json_or_a_file(folder: Path, tmp_path: Path) -> None:
    other = small_run(tmp_path / "other", policy="linear")
    assert "| linear | 1 | 98 % | [0.000 pp] |" in run("compare", folder, other).stdout
    found = json.loads(run("compare", folder, other, "--json").stdout)
    assert [one["label"] for one in found["contestants"]] == ["tail-aware", "linear"]
    assert run("compare", folder, other, "--out", tmp_path / "table.md").stdout == ""
    assert "| linear |" in (tmp_path / "table.md").read_text()


def test_runs_that_cannot_be_compared_are_rejected_before_anything_starts(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(TailpackError, match="two different runs"):
        run("compare", folder, folder)
    with pytest.raises(TailpackError, match="nowhere is not the folder of a run"):
        run("compare", folder, tmp_path / "nowhere")
