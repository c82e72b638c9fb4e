"""Targets, and what counts as reaching them."""

from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner

from bench.experiments.fronts import FrontFigures
from bench.experiments.goals import GOALS, HARD, Checked, Goal, by_world, checked
from bench.experiments.worlds import all_worlds, name_of
from bench.results import DecisionRow, Origin, keep
from tailpack.cli.main import app

ORIGIN = Origin(command="c", commit="abc", machine="m", measured_on="2026-01-01")
GOOD = FrontFigures(
    world="w1", player="tail-aware", seeds=2, duration_s=600.0, in_sla=0.9995, least_in_sla=0.9985,
    replica_minutes=28.0, packing_replica_minutes=28.0, plan_changes=50, moved=80, beaten_by="",
    over_optimum=1.1, least_over_optimum=1.05,
)  # fmt: skip


def row(**figures: object) -> FrontFigures:
    return msgspec.structs.replace(GOOD, **figures)


def found(*rows: FrontFigures) -> dict[str, Checked]:
    return {f"{one.where}: {one.target}": one for one in checked(by_world(rows))}


@pytest.mark.parametrize(
    ("figures", "reached"),
    [
        ({}, True),
        ({"in_sla": 0.9989}, False),
        ({"least_in_sla": 0.9979}, False),
        ({"over_optimum": 1.16}, False),
        ({"over_optimum": None}, None),
        ({"over_optimum": None, "in_sla": 0.9}, False),
    ],
)
def test_a_goal_asks_for_every_figure(figures, reached) -> None:
    goal = Goal("w1", {"in_sla": 0.999, "least_in_sla": 0.998, "over_optimum": 1.15})
    assert goal.check(row(**figures)).reached is reached


def test_a_goal_without_a_row_is_not_known() -> None:
    assert Goal("w1", {"packing": 0.9}).check(None).reached is None
    assert Goal("w1", {"packing": 0.9}).check(GOOD).reached is False


def test_every_goal_is_about_a_world_that_is_played() -> None:
    names = {name_of(one) for one in all_worlds()}
    assert {goal.world for goal in GOALS} | set(HARD) <= names


def test_where_it_is_beaten_or_restless_is_named() -> None:
    tuned = row(player="algorithm-2, tuned", plan_changes=40)
    rows = found(row(beaten_by="linear"), tuned, row(world="step"), row(world="step", player="algorithm-2, tuned"))
    beaten = rows["every world: not beaten, share groups aside"]
    assert (beaten.figure, beaten.reached) == ("1 of 2; not in w1 (by linear)", False)
    restless = rows["every world: no more plan changes than algorithm-2, tuned"]
    assert (restless.figure, restless.reached) == ("1 of 2; not in w1 (50, 40 there)", False)
    assert rows["the standard worlds: ≤ 1 plan change in 10 s, in the mean"].figure == "0.83"


def test_what_no_other_keeps_in_order_is_not_asked_for() -> None:
    late = row(world="square-1", in_sla=0.99)
    pool = row(world="square-1", player="share group, static-2", ordered=False)
    key = "each of the hard worlds: ≥ 99.9 % where any other reaches that"
    assert found(late, pool)[key].reached is True
    assert found(late, row(world="square-1", player="static-3"))[key].reached is False


def test_a_decision_is_as_slow_as_its_slowest_arrivals_make_it() -> None:
    def said(*ms: float) -> list[tuple[str, bool | None]]:
        ways = [
            DecisionRow(partitions=100, replicas=20, arrivals=f"way {i}", ms={"tail-aware": one})
            for i, one in enumerate(ms)
        ]
        return [(one.figure, one.reached) for one in checked({}, decisions=ways) if "100 partitions" in one.where]

    assert said(1.9, 2.1) == [("1.9 ms way 0, 2.1 ms way 1", False)]
    assert said(1.9, 2.0) == [("1.9 ms way 0, 2.0 ms way 1", True)]
    assert said() == [("–", None)]


def test_the_command_says_which_targets_are_reached(tmp_path: Path) -> None:
    keep("fronts", [GOOD], ORIGIN, tmp_path)
    done = CliRunner().invoke(app, ["bench", "targets", "--from", str(tmp_path)])
    assert "reached    w1: ≥ 99.9 %" in done.stdout
    assert done.exit_code == 0
    keep("fronts", [row(in_sla=0.9)], ORIGIN, tmp_path)
    done = CliRunner().invoke(app, ["bench", "targets", "--from", str(tmp_path), "--json"])
    assert done.exit_code == 1
    assert msgspec.json.decode(done.stdout.splitlines()[0])[0]["reached"] is False


def test_without_figures_it_says_how_to_make_them(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["bench", "targets", "--from", str(tmp_path)])
    assert done.exit_code != 0
