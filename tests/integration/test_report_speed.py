"""The made-up run through Spark, pandas and DuckDB: everybody finds the same, and every late event has a cause."""

import contextlib
from pathlib import Path

import psutil
import pytest

from bench.figures import Origin
from bench.report_speed.answer import Way
from bench.report_speed.once import ANSWERS
from tailpack import report_speed

pytestmark = [pytest.mark.spark, pytest.mark.long, pytest.mark.timeout(900)]
EVENTS = 100_000
ORIGIN = Origin(command="tailpack bench report", commit="0123abc", machine="2 cores", measured_on="2026-01-05")


def test_all_ways_answer_the_same_of_the_same_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report_speed, "cache_folder", lambda: tmp_path)
    folder = report_speed.ensure_input(EVENTS)
    before, running = sorted(place.name for place in folder.iterdir()), _jvms()
    measurement = report_speed.Measurement(EVENTS, "local[2]")

    for way in ANSWERS:
        measurement.take(way, folder)

    row = measurement.row(ORIGIN)
    assert row
    figures = measurement.taken[Way.SPARK][0].answer.figures
    assert figures
    late = figures.events - figures.in_sla
    assert 0 < late < EVENTS // 10
    assert sum(row.late_by_cause.values()) == late
    assert len(row.late_by_cause) > 1
    assert measurement.taken[Way.WHOLE][0].answer.causes == row.late_by_cause, "the whole report says the same"
    assert [one.engine for one in row.against] == ["pandas", "duckdb"]
    assert all(0.01 < one.peak_rss_gib < row.peak_rss_gib for one in row.against)
    assert sorted(place.name for place in folder.iterdir()) == before, "nothing is written beside the run"
    assert _jvms() == running, "nothing keeps running; other tests may have a Spark of their own"


def _jvms() -> set[int]:
    return {one.pid for one in psutil.Process().children(recursive=True) if _is_java(one)}


def _is_java(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return "java" in process.name()
    return False
