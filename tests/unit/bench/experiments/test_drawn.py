"""Worlds that nobody chose are the same for everybody, and each asks something."""

from pathlib import Path

import pytest

from bench.experiments import drawn
from bench.experiments.drawn import Came, DrawnWorld, by_world, drawn_table, drawn_worlds
from bench.experiments.fronts import FrontFigures
from bench.experiments.opponents import OURS
from bench.experiments.worlds import name_of
from bench.results import Kept, Origin
from bench.simulation.sent import sent_by


def row(world: str, player: str, in_sla: float, beaten_by: str = "") -> FrontFigures:
    return FrontFigures(
        world=world, player=player, seeds=2, in_sla=in_sla, least_in_sla=in_sla, replica_minutes=20.0,
        plan_changes=5.0, moved=9.0, beaten_by=beaten_by,
    )  # fmt: skip


def test_a_world_is_what_its_number_draws_however_many_there_are() -> None:
    some = drawn_worlds(30)
    assert drawn_worlds(7) == some[:7]
    assert len({name_of(one) for one in some}) == 30
    assert {one.scenario for one in some} > {"w1", "spike", "step"}, "not the same curve again and again"


@pytest.mark.parametrize("one", drawn_worlds(12), ids=name_of)
def test_a_replica_serves_each_partition_in_time_and_none_serves_all(one) -> None:
    question = one.experiments(OURS.policy, 1)[0].question()
    busy_s = sent_by(question).table() * question.payment.service_time_s
    assert busy_s.max() < question.target.latency_target_s
    assert busy_s.max() < 1 < busy_s.sum(axis=1).max()


def test_rows_become_worlds_in_which_ours_took_part() -> None:
    rows = [row("a", "tail-aware", 0.99, "static-2"), row("a", "static-2", 1.0), row("b", "static-2", 1.0)]
    (one,) = by_world(rows)
    assert one.players == {"tail-aware": Came(0.99, 20.0, 5.0, "static-2"), "static-2": Came(1.0, 20.0, 5.0, "")}
    assert str(one) == "a: 99 % at 20.0 r-m, beaten by static-2"


def test_the_page_says_first_in_how_many_ours_is_beaten(monkeypatch) -> None:
    origin = Origin(command="tailpack bench drawn", commit="abc", machine="m", measured_on="2026-01-01")
    worlds = by_world(
        [
            *(row("a", "tail-aware", 0.99, "linear"), row("a", "linear", 0.995), row("a", "static-2", 0.9)),
            *(row("b", "tail-aware", 1.0), row("b", "linear", 0.9, "tail-aware")),
        ]
    )

    def load(name: str, kind: type[DrawnWorld], folder: Path | None = None) -> list[Kept[DrawnWorld]]:
        assert (name, kind) == ("fronts-drawn", DrawnWorld)
        return [Kept(one, origin) for one in worlds]

    monkeypatch.setattr(drawn, "load", load)
    monkeypatch.setattr(drawn, "IN_SIGHT", 1)
    page = drawn_table()
    assert page.startswith("**`tail-aware` is beaten in 1 of 2 drawn worlds**, in 0 of the 1 after number 1; in 1 of ")
    assert "| linear | 94.75 % | 90 % | 0 | 20.0 | 5 | 1 |" in page
    assert "| static-2 |" not in page, "it took part in one only"
    assert "| a | 99 % | 20.0 | 5 | linear: 99.5 %, 20.0 |" in page
