"""Goals, and what counts as reaching them."""

import msgspec
import pytest
from typer.testing import CliRunner

from bench.experiments import tables
from bench.experiments.compare import PolicyFigures
from bench.experiments.experiment import world
from bench.experiments.goals import GOALS, Goal
from bench.results import Kept, Origin
from tailpack.cli.main import app


@pytest.mark.parametrize(
    ("in_sla", "ratio", "minutes", "reached"),
    [(0.9995, 1.01, 40, True), (0.9985, 1.01, 40, False), (0.9995, 1.03, 40, False)],
)
def test_a_goal_asks_for_events_in_time_and_for_their_cost(in_sla, ratio, minutes, reached):
    goal = Goal(world("w1"), 0.999, packing_ratio=1.02)
    assert goal.reached(in_sla, ratio, minutes) is reached


def test_a_goal_in_replica_minutes_does_not_ask_for_the_bound():
    goal = Goal(world("w1", {"rebalance_time_s": 2}), 0.995, replica_minutes=36)
    assert goal.reached(0.996, 1.3, 35.9)
    assert not goal.reached(0.996, 1.0, 36.1)
    assert str(goal) == "≥ 99.5 % at ≤ 36 r-m"


def test_every_goal_is_a_question_that_can_be_asked():
    assert all(goal.world.experiments("tail-aware", 1)[0].question() for goal in GOALS)


def test_the_command_says_which_goals_are_reached_and_the_table_shows_them(tmp_path, monkeypatch):
    monkeypatch.setattr("bench.experiments.goals.OTHERS", ("linear",))
    monkeypatch.setattr("bench.experiments.goals.GOALS", (Goal(world("w1", {"duration_s": 60}), 0.999, 1.02),))
    done = CliRunner().invoke(app, ["bench", "targets", "--processes", "1", "--out", str(tmp_path / "out"), "--json"])
    rows = msgspec.json.decode(done.stdout.splitlines()[0])["rows"]
    assert [row["policy"] for row in rows] == ["tail-aware", "linear"]
    assert done.exit_code == 0
    origin = Origin(command="c", commit="abc", machine="m", measured_on="2026-01-01")
    kept = [Kept(msgspec.convert(row, PolicyFigures), origin) for row in rows]
    monkeypatch.setattr(tables, "GOALS", (Goal(world("w1", {"duration_s": 60}), 0.999, 1.02),))
    monkeypatch.setattr(tables, "load", lambda *_: kept)
    assert "| w1, duration_s=60 | ≥ 99.9 % at ≤ 1.02 × | 100 % |" in tables.targets()
