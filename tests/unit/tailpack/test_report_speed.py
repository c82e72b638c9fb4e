"""The made-up run has exactly the events asked for, in the form of any other run."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from bench.simulation.folder import EVENT_TYPES, write_run
from tailpack import report_speed
from tailpack.provenance import describe_simulated

EVENTS = 3_000


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(report_speed, "w1", lambda: np.array([1, 20, 60, 20, 1]))
    scenario, sent, run = report_speed.made_up(EVENTS, seed=1)
    info = describe_simulated(scenario, sent, run.drained_us, tmp_path / "run")
    return write_run(tmp_path / "run", run, info, report_speed.as_noted(run, seed=1))


def rows(folder: Path) -> dict[str, Any]:
    table = pq.read_table(folder / "events.parquet")
    return {name: column.to_numpy() for name, column in zip(table.column_names, table.columns, strict=True)}


@pytest.mark.parametrize("events", [1, 17, 100_000, 5_000_001])
def test_seconds_have_as_many_events_as_asked_for(events: int) -> None:
    counts = report_speed.counts_of(events)
    assert counts.sum() == events
    assert counts[-1] > 0


def test_a_run_longer_than_w1_has_a_death_in_each_ten_minutes() -> None:
    scenario = report_speed.scenario_for(1, 1500)
    assert scenario.duration_s == 1500
    assert scenario.simulation.failures_s == (200.0, 800.0, 1400.0)


def test_each_event_is_a_row_with_times_in_order(folder: Path) -> None:
    found = rows(folder)
    assert list(found) == list(EVENT_TYPES)
    assert len(set(found["event_id"])) == EVENTS
    for earlier, later in (("intended_us", "placed_us"), ("placed_us", "received_us"), ("received_us", "done_us")):
        assert (found[earlier] <= found[later]).all()
    assert (found["placed_us"] > found["intended_us"]).any(), "the generator is a little late"
