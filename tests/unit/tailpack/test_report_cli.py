"""`tailpack report` and `tailpack report compare`, as somebody at a terminal or a script meets them; Spark aside."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from small_report import small_result, small_run
from typer.testing import CliRunner, Result

from bench.report.run_comparison import RunComparison
from tailpack import judge, report_cli, reporting
from tailpack.errors import TailpackError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return small_run(tmp_path / "small")


def run(*words: object) -> Result:
    """Run the command; an exception of ours reaches the test, as it reaches `tailpack.cli.main`."""
    return CliRunner().invoke(report_cli.app, [str(word) for word in words], catch_exceptions=False)


def test_the_command_in_between_may_be_left_out(folder: Path) -> None:
    short, long = (run(*words, folder, "--kept", "--format", "json") for words in ((), ("run",)))
    assert short.stdout == long.stdout
    assert json.loads(short.stdout)["run"] == "small"
    assert run("--format", "json", "--kept", folder).stdout == short.stdout, "options may come first"


def test_a_report_is_computed_unless_the_kept_one_is_wanted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def judged(place: Path, *, master: str, **_: object) -> None:
        made.append(master)
        small_result(run="again").save(place)

    monkeypatch.setattr(reporting, "judge", judged)
    assert json.loads(run(folder, "--kept", "--json").stdout)["run"] == "small"
    assert made == []
    assert json.loads(run(folder, "--json", "--master", "local[1]").stdout)["run"] == "again"
    assert made == ["local[1]"]


def test_markdown_is_one_page_on_standard_output_and_nothing_else(folder: Path) -> None:
    page = run(folder, "--kept", "--format", "markdown").stdout
    assert page.startswith("# w1, tail-aware, seed 1\n")
    assert "## Why events were late" in page


def test_csv_is_a_file_for_each_table_or_one_on_standard_output(folder: Path) -> None:
    ended = run(folder, "--kept", "--format", "csv")
    assert ended.stdout == ""
    assert "tables" in ended.stderr
    one = run(folder, "--kept", "--format", "csv", "--table", "partitions").stdout
    assert one == (folder / "tables" / "partitions.csv").read_text()
    assert [row["late"] for row in csv.DictReader(io.StringIO(one))] == ["2", "0"]


def test_the_page_of_a_kept_result_is_drawn_again(folder: Path) -> None:
    ended = run(folder, "--kept")
    assert "98 %" in ended.stdout
    assert "<html" in (folder / "report.html").read_text()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--table", "spells"), "--table is for --format csv"),
        (("--format", "csv", "--table", "spell"), "no table is called spell; there are run, causes, spells"),
        (("--format", "csv", "--json"), "--json contradicts --format csv"),
    ],
)
def test_options_that_do_not_go_together(folder: Path, words: tuple[str, ...], message: str) -> None:
    with pytest.raises(TailpackError, match=message):
        run(folder, "--kept", *words)


def test_a_kept_result_that_is_missing_or_broken(folder: Path) -> None:
    (folder / "result.json").write_text('{"run": 7}')
    with pytest.raises(TailpackError, match="not a result"):
        run(folder, "--kept")
    (folder / "result.json").unlink()
    with pytest.raises(TailpackError, match=r"holds no result\.json; without --kept it is computed"):
        run(folder, "--kept")


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Any]:
    """Comparisons that were asked of Spark; each gives a comparison in which nobody takes part."""
    asked: list[Any] = []

    def compare(runs: list[Path], out: Path, **how: Any) -> None:
        asked.append((runs, how["master"]))
        empty = RunComparison(
            verdict="w1: equal.", scenarios=(), problems=("b: not valid",), method="How.", command=how["command"]
        )
        empty.save(out)

    monkeypatch.setattr(judge, "compare", compare)
    monkeypatch.chdir(tmp_path)
    return asked


def test_runs_are_compared_into_a_folder_of_their_own(folder: Path, compared: list[Any], tmp_path: Path) -> None:
    other = small_run(tmp_path / "other", policy="linear")
    ended = run("compare", folder, other)
    assert compared == [([folder, other], "local[2]")]
    assert "b: not valid" in ended.stdout
    (made,) = (tmp_path / "out").iterdir()
    assert {"comparison.json", "comparison.html"} <= {path.name for path in made.iterdir()}
    assert "w1: equal." in (made / "comparison.html").read_text()


def test_a_comparison_in_every_format(folder: Path, compared: list[Any], tmp_path: Path) -> None:
    runs = (folder, small_run(tmp_path / "other", policy="linear"), "--out", tmp_path / "here")
    assert json.loads(run("compare", *runs, "--json").stdout)["verdict"] == "w1: equal."
    assert run("compare", *runs, "--format", "markdown").stdout.startswith("# Runs compared\n\nw1: equal.\n")
    assert run("compare", *runs, "--format", "csv", "--table", "differences").stdout.startswith("scenario,label,")
    run("compare", *runs, "--format", "csv")
    assert {path.name for path in (tmp_path / "here" / "tables").iterdir()} == {
        "contestants.csv", "differences.csv", "same-events.csv", "runs.csv",
    }  # fmt: skip


def test_what_cannot_be_compared_is_said_before_anything_starts(
    folder: Path, compared: list[Any], tmp_path: Path
) -> None:
    with pytest.raises(TailpackError, match="name two runs or more"):
        run("compare", folder, folder)
    with pytest.raises(TailpackError, match="nowhere is not the folder of a run"):
        run("compare", folder, tmp_path / "nowhere")
    assert compared == []
    assert not (tmp_path / "out").exists()
