"""The made-up run has exactly the events asked for, in the form of any other run, and is one run from end to end."""

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow.parquet as pq
import pytest

from bench.report_speed import made_up
from bench.report_speed.files import EVENT_SCHEMA
from bench.simulation.folder import EVENT_TYPES
from contracts.journal import JournalEntry, PlanWritten, ReplicaChange, ReplicaChanged, TickRecord
from loadgen.papers import w1
from report.run_info import RunInfo

SHORT_STAGE = np.array([1, 20, 60, 20, 1])
"""Five seconds of 18 times as many events: 1,836."""


def columns(folder: Path) -> dict[str, Any]:
    return {name: column.to_numpy() for name, column in zip(*_read(folder), strict=True)}


def _read(folder: Path) -> tuple[list[str], list[Any]]:
    table = pq.read_table(folder / "events.parquet")
    return table.column_names, table.columns


def journal(folder: Path) -> list[Any]:
    texts = pq.read_table(folder / "journal.parquet").column("entry").to_pylist()
    return [msgspec.json.decode(text, type=JournalEntry) for text in texts]


@pytest.fixture
def three_stages(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(made_up, "w1", lambda: SHORT_STAGE)
    made_up.make_up(tmp_path, 5_000, seed=1)
    return tmp_path


@pytest.mark.parametrize("events", [1, 17, 100_000, 5_000_001])
def test_stages_have_as_many_events_as_asked_for(events: int) -> None:
    found = list(made_up.stages(events))
    assert sum(int(stage.sum()) for stage in found) == events
    assert all((stage == made_up.TIMES_W1 * w1()).all() for stage in found[:-1]), "only the last one ends early"
    assert found[-1][-1] > 0


def test_each_event_is_a_row_with_times_in_order(three_stages: Path) -> None:
    rows = columns(three_stages)
    assert list(rows) == [*EVENT_TYPES, "customer_hash"] == EVENT_SCHEMA.names
    assert len(set(rows["event_id"])) == 5_000
    for earlier, later in (("intended_us", "placed_us"), ("placed_us", "received_us"), ("received_us", "done_us")):
        assert (rows[earlier] <= rows[later]).all()
    assert (rows["placed_us"] > rows["intended_us"]).any(), "the generator is a little late"


def test_stages_follow_each_other_in_time_offsets_and_epochs(three_stages: Path) -> None:
    rows = columns(three_stages)
    for partition in range(made_up.PARTITIONS):
        mine = rows["partition"] == partition
        assert rows["offset"][mine].tolist() == list(range(mine.sum()))
        assert (np.diff(rows["done_us"][mine]) >= 0).all(), "a partition is served in order"
    plans = [entry for entry in journal(three_stages) if isinstance(entry, PlanWritten)]
    assert [plan.epoch for plan in plans] == list(range(1, len(plans) + 1))
    assert set(rows["epoch"]) <= {plan.epoch for plan in plans}


def test_the_journal_is_one_in_order_of_time_and_between_stages_nobody_is_there(three_stages: Path) -> None:
    entries = journal(three_stages)
    assert [entry.at_us for entry in entries] == sorted(entry.at_us for entry in entries)
    ticks = [entry.tick for entry in entries if isinstance(entry, TickRecord)]
    assert ticks == list(range(ticks[0], ticks[0] + len(ticks)))
    here: set[str] = set()
    for entry in entries:
        if isinstance(entry, PlanWritten) and entry.action == "start":
            assert here <= set(entry.replicas), "whoever served the stage before has left"
        if isinstance(entry, ReplicaChanged) and entry.change is ReplicaChange.REQUESTED:
            here.add(entry.replica)
        if isinstance(entry, ReplicaChanged) and entry.change in made_up.GONE:
            here.remove(entry.replica)
    assert here == set()


def test_the_run_is_described_as_it_is(three_stages: Path) -> None:
    run, rows = RunInfo.load(three_stages), columns(three_stages)
    assert run.events_scheduled == 5_000
    assert run.started_us == made_up.STARTED_US <= rows["intended_us"].min()
    assert run.drained_us is not None
    assert run.drained_us >= rows["done_us"].max()
    assert run.duration_s == (run.drained_us - run.started_us) / 1e6


def test_equal_seeds_make_equal_runs(three_stages: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    again, other = tmp_path_factory.mktemp("again"), tmp_path_factory.mktemp("other")
    told: list[int] = []
    made_up.make_up(again, 5_000, 1, told.append)
    made_up.make_up(other, 5_000, 2)
    assert _read(again)[1] == _read(three_stages)[1]
    assert _read(other)[1] != _read(three_stages)[1]
    assert sum(told) == 5_000
