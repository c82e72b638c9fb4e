"""Finished rows are stored, valid rows are not measured again, and every benchmark is a command."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Annotated

import pytest
from typer import Option
from typer.testing import CliRunner

from bench.benchmark import Benchmark, Row, Tools, run
from bench.benchmarks import BENCHMARKS
from tailpack.cli.main import app

TOOLS = Tools(kafka=pytest.fail, announce=lambda **_: None)
MEASURED_TICKS: list[str] = []


@dataclass(kw_only=True)
class Letters(Benchmark):
    """Measure letters."""

    letters: Annotated[str, Option(help="Letters.")] = "abc"
    interrupt: str = ""
    problems: dict[str, str] = field(default_factory=dict)

    def cases(self) -> Sequence[str]:
        return list(self.letters)

    def measure(self, case: str, tools: Tools) -> Row:
        if case == self.interrupt:
            raise KeyboardInterrupt
        MEASURED_TICKS.append(case)
        return {"letter": case, "problem": self.problems.get(case, "")}


@pytest.fixture(autouse=True)
def _nothing_measured() -> None:
    MEASURED_TICKS.clear()


def test_an_interruption_keeps_the_finished_rows() -> None:
    outcome = run(Letters(interrupt="c"), TOOLS)
    assert outcome.interrupted
    assert [row["letter"] for row in outcome.rows] == ["a", "b"]


def test_the_same_command_goes_on_and_measures_invalid_rows_again(tmp_path: Path) -> None:
    first = run(Letters(problems={"b": "the load was late"}), TOOLS, into=tmp_path)
    again = run(Letters(problems={"b": "the load was late"}), TOOLS, into=tmp_path)
    assert (first.valid, MEASURED_TICKS) == (False, ["a", "b", "c", "b"])
    assert [row["letter"] for row in again.rows] == ["a", "c", "b"]
    run(Letters(letters="ab"), TOOLS, into=tmp_path)
    assert MEASURED_TICKS[4:] == ["a", "b"], "other options are another question"


@pytest.mark.parametrize("name", BENCHMARKS)
def test_every_benchmark_is_a_command_with_help(name: str) -> None:
    module, kind = BENCHMARKS[name][0].split(":")
    summary = (getattr(import_module(module), kind).__doc__ or "").partition("\n")[0]
    shown = CliRunner().invoke(app, ["dev", "bench", name, "--help"], env={"COLUMNS": "300", "TERM": "dumb"})
    assert shown.exit_code == 0, shown.output
    assert summary.split(";")[0][:60] in shown.output
    assert "--json" in shown.output
