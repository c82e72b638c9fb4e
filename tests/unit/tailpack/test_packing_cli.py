"""`tailpack packing`: one JSON object or tables, what is kept, and one line for what can be mended."""

import json
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from studies.packing import compare, kept
from studies.packing.contestants import THE_TWELVE
from tailpack.cli import packing as packing_cli
from tailpack.errors import TailpackError

TINY = ("--streams", "2", "--iterations", "6", "--partitions", "9", "--delta", "10", "--processes", "1")


def run(*words: str) -> Result:
    """Run the command line; an exception of ours reaches the test, as it reaches `tailpack.cli.main`."""
    return CliRunner().invoke(packing_cli.app, list(words), catch_exceptions=False)


@pytest.fixture(scope="module")
def told() -> dict[str, Any]:
    """What the command says with `--json`: one object and nothing else."""
    found: dict[str, Any] = json.loads(run("compare", *TINY, "--json").stdout)
    return found


def test_json_says_what_was_packed_and_what_came_of_it(told: dict[str, Any]) -> None:
    (study,) = told["studies"]
    assert (study["partitions"], study["delta"], study["streams"], study["iterations"]) == (9, 10, 2, 6)
    assert {*THE_TWELVE, "keep_in_place", "least_loaded"} <= {point["packer"] for point in study["points"]}
    assert {"rscore", "cbs", "front", "dominated_by", "forced_rscore"} <= set(study["points"][0])
    assert {claim["verdict"] for claim in told["claims"]} <= {"reproduced", "differs", "cannot be checked"}


def test_people_get_the_same_figures_as_tables_and_the_folder_keeps_them(told: dict[str, Any], tmp_path: Path) -> None:
    shown = run("compare", *TINY, "--into", str(tmp_path)).stdout
    for words in (
        "9 partitions, δ = 10: 2 streams, 6 iterations",
        "keep_in_place",
        "mbfp",
        "kd_31",
        "published",
        "217",
    ):
        assert words in shown
    found = kept.kept(tmp_path)
    assert json.loads(found.to_json())["studies"] == told["studies"], "equal seeds, equal figures"
    assert found.origin.command.startswith("tailpack")


def test_without_options_the_issue_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[compare.Question] = []

    class Answered(Exception):  # noqa: N818  nothing went wrong
        pass

    def pack(question: compare.Question, _processes: int) -> None:
        asked.append(question)
        raise Answered

    monkeypatch.setattr(packing_cli, "_pack", pack)
    for words in ((), ("--quick",), ("--quick", "--streams", "7")):
        with pytest.raises(Answered):
            run("compare", *words)
    full, quick, own = asked
    assert (full.streams, full.deltas, full.partitions, full.iterations) == (20, (5, 25), (200, 32), 501)
    assert (quick.quick, quick.streams, quick.iterations) == (True, 3, 101)
    assert (own.streams, own.iterations) == (7, 101)


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("--delta", "101"), "delta and start must lie between 0 and 100"),
        (("--delta", "5", "--delta", "-1"), "delta and start must lie between 0 and 100"),
        (("--start", "250"), "delta and start must lie between 0 and 100"),
    ],
)
def test_what_no_stream_can_be_is_one_line(words: tuple[str, ...], line: str) -> None:
    with pytest.raises(TailpackError, match=line):
        run("compare", *words)


@pytest.mark.parametrize("words", [("--streams", "0"), ("--iterations", "1"), ("--partitions", "0"), ("--seed", "-1")])
def test_numbers_out_of_range_are_refused_by_name(words: tuple[str, str]) -> None:
    ended = run("compare", *words)
    assert ended.exit_code == 2
    assert words[0] in ended.stderr


def test_a_plot_without_figures_says_how_to_get_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def nothing_kept() -> None:
        raise FileNotFoundError

    monkeypatch.setattr(kept, "kept", nothing_kept)
    with pytest.raises(TailpackError, match="tailpack packing compare --into bench/reference"):
        run("plot", str(tmp_path / "packing.svg"))


def test_the_commands_are_in_the_command_line() -> None:
    from tailpack.cli import main as cli

    packing = typer.main.get_command(cli.app).commands["packing"]  # type: ignore[attr-defined]
    assert set(packing.commands) == {"compare", "plot"}
