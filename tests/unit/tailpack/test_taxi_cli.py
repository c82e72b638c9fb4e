"""`tailpack taxi` as somebody at a terminal or a script meets it; Spark is replaced by an answer."""

import json
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner, Result

from bench.taxi import build, made_up
from bench.taxi.months import Month
from bench.taxi.outcome import Dropped, Outcome
from bench.taxi.request import Request
from contracts.validation import InvalidSettingsError
from report.spark import ReportError
from tailpack import taxi_bench
from tailpack.cli import taxi as taxi_cli
from tailpack.errors import TailpackError

OUTCOME = Outcome(
    rows=1_203,
    trips=1_200,
    dropped=Dropped(unreadable=1, duplicate=2),
    events=2_399,
    outside=1,
    duration_s=60,
    partitions=9,
    largest=70,
    hottest_share=0.2,
)


def run(*words: str) -> Result:
    return CliRunner().invoke(taxi_cli.app, list(words), catch_exceptions=False)


def test_options_become_a_request_and_its_outcome_one_json_object(monkeypatch, tmp_path: Path) -> None:
    asked: list[tuple[Sequence[str], Path, Request, str]] = []
    monkeypatch.setattr(build, "build", lambda *words: asked.append(words) or OUTCOME)
    out = tmp_path / "trace.csv"

    ended = run("a.csv", "b.csv", "--out", str(out), "--speed", "0.5", "--by", "zone", "--partitions", "9",
                "--events", "pickup", "--month", "2013-01", "--master", "spark://host:7077", "--json")  # fmt: skip
    figures = json.loads(ended.stdout)

    wanted = Request(speed=Fraction(1, 2), partitions=9, by="zone", ends="pickup", month=Month(2013, 1))
    assert asked == [(["a.csv", "b.csv"], out, wanted, "spark://host:7077")]
    assert figures["dropped"] == msgspec.to_builtins(OUTCOME.dropped)
    assert (figures["trace"], figures["events"], figures["trips"]) == (str(out), 2_399, 1_200)
    assert figures["wall_s"] >= 0


def test_on_the_terminal_each_rule_that_dropped_something_is_a_line(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setattr(build, "build", lambda *_: OUTCOME)

    ended = run("a.csv", "--out", str(tmp_path / "trace.csv"))

    assert ended.stdout == ""
    assert "dropped: unreadable" in ended.stderr
    assert "1,203" in ended.stderr
    assert "backwards" not in ended.stderr
    assert "the busiest has 20.0 %" in ended.stderr
    assert "\ntrace: " in ended.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--speed", "fast"], "--speed: 'fast' is no speed factor"),
        (["--month", "2013"], "--month: '2013' is no month"),
        (["--by", "zone"], "--by zone: needs --partitions"),
        (["--partitions", "0"], "--partitions 0: must be at least 1"),
        (["--speed", "1", "--partitions", "100", "--month", "2013-01"], "are more than 10,000,000 numbers"),
    ],
)
def test_what_cannot_be_is_refused_before_a_jvm_starts(tmp_path: Path, monkeypatch, words: list[str], said) -> None:
    monkeypatch.setattr(build, "open_session", None)
    (tmp_path / "a.csv").touch()

    with pytest.raises(InvalidSettingsError, match=said):
        run(str(tmp_path / "a.csv"), "--out", str(tmp_path / "trace.csv"), *words)


def test_files_that_cannot_be_used_are_an_error_of_one_line(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(build, "open_session", None)

    with pytest.raises(TailpackError, match="is not there"):
        run(str(tmp_path / "2013-01.csv"), "--out", str(tmp_path / "trace.csv"))
    (tmp_path / "2013-01.csv").touch()
    (tmp_path / "2013-03.csv").touch()
    with pytest.raises(TailpackError, match="2013-02 is missing"):
        run(str(tmp_path), "--out", str(tmp_path / "trace.csv"))
    with pytest.raises(TailpackError, match="is a folder"):
        run(str(tmp_path / "2013-01.csv"), "--out", str(tmp_path))


def test_the_bench_keeps_its_month_and_makes_it_anew_only_for_other_code(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    made: list[int] = []
    make_up = made_up.make_up
    monkeypatch.setattr(made_up, "make_up", lambda *words: made.append(words[2]) or make_up(*words))

    first = taxi_bench._month(2000, "parquet", "zones")
    again = taxi_bench._month(2000, "parquet", "zones")

    assert first == again
    assert made == [2000]
    assert sorted(one.suffix for one in first[0].parent.iterdir()) == [".json", ".parquet"]


def test_an_error_of_the_job_is_a_line_for_the_user(monkeypatch, tmp_path: Path) -> None:
    def fails(*_: object) -> Outcome:
        raise ReportError("torn")

    monkeypatch.setattr(build, "build", fails)
    with pytest.raises(TailpackError, match=r"^torn$"):
        run("a.csv", "--out", str(tmp_path / "trace.csv"))
