"""`tailpack taxi` as somebody at a terminal or a script meets it; Spark is replaced by an answer."""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from command_line import run

from bench.taxi import trace
from bench.taxi.trace import Outcome, Request
from bench.taxi.trips import Month
from report.spark import ReportError
from tailpack.errors import TailpackError

OUTCOME = Outcome(1_203, 1_200, 2_399, 1, 60, 9, 70, 0.2, {"unreadable": 1, "backwards": 0, "duplicate": 2})


def test_options_become_a_request_and_its_outcome_one_json_object(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(trace, "build", lambda *words: asked.append(words) or OUTCOME)
    out = tmp_path / "trace.csv"
    words = ["a.csv", "b.csv", "--out", str(out), "--speed", "0.5", "--by", "zone", "--partitions", "9",
             "--events", "pickup", "--month", "2013-01", "--master", "spark://host:7077", "--json"]  # fmt: skip

    ended = run("taxi", *words)

    wanted = Request(speed=Fraction(1, 2), partitions=9, by="zone", ends="pickup", month=Month(2013, 1))
    assert asked == [(["a.csv", "b.csv"], out, wanted, "spark://host:7077")]
    figures = json.loads(ended.stdout)
    assert (figures["trace"], figures["events"], figures["dropped"]) == (str(out), 2_399, OUTCOME.dropped)
    assert "1,200 trips of 1,203 records (1 unreadable, 2 duplicate dropped)" in ended.stderr


def test_what_cannot_be_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def fails(*_: object) -> Outcome:
        raise ReportError("torn")

    monkeypatch.setattr(trace, "build", fails)
    words = ["a.csv", "--out", str(tmp_path / "trace.csv")]
    with pytest.raises(TailpackError, match=r"^torn$"):
        run("taxi", *words)
