"""Who plays at which phase and setting, and who is beaten by whom."""

from pathlib import Path
from typing import Any

import comparison_work
import msgspec
import pytest

from bench.experiments import fronts as played
from bench.experiments.campaign import Campaign
from bench.experiments.experiment import World, experiment, simulated, world
from bench.experiments.fronts import FrontFigures, fronts, judged
from bench.experiments.opponents import DEFAULTS, OURS, Player, candidates, constant_counts, share_groups
from bench.experiments.tuning import TunedFigures, chosen
from bench.experiments.worlds import STANDARD, all_worlds, name_of
from bench.simulation.result import SimulationResult
from contracts.validation import InvalidSettingsError
from report.statistics import Against

LINEAR = Player("linear", "linear")
STATIC = Player("static-2", "static")
POOL = Player("share group, static-2", "static", (("payment.delivery", "share"),), ordered=False)


def runs(*figures: tuple[float, float]) -> list[SimulationResult]:
    """Return a run for each (in SLA, replica-minutes), with seeds from 1."""
    return [
        comparison_work.told(experiment("w1", "linear", seed=seed), in_sla=in_sla, replica_minutes=cost)
        for seed, (in_sla, cost) in enumerate(figures, start=1)
    ]


def rows_of(ran: dict[Player, list[SimulationResult]], **also: Any) -> dict[str, FrontFigures]:
    return {row.player: row for row in judged("w1", ran, **also)}


@pytest.mark.parametrize(
    ("ours", "other", "beaten"),
    [
        ((0.99, 30.0), (0.99, 29.0), True),
        ((0.99, 30.0), (0.995, 30.0), True),
        ((0.99, 30.0), (0.99, 30.0), False),
        ((0.99, 30.0), (0.98, 20.0), False),
        ((0.99, 30.0), (0.999, 31.0), False),
    ],
)
def test_beaten_is_who_keeps_no_more_and_costs_no_less(ours, other, beaten) -> None:
    found = rows_of({OURS: runs(ours), LINEAR: runs(other)})
    assert found["tail-aware"].beaten_by == ("linear" if beaten else "")


def test_of_several_that_beat_it_the_cheapest_is_named_and_means_decide() -> None:
    found = rows_of(
        {OURS: runs((0.98, 29.0), (1.0, 31.0)), LINEAR: runs(*[(0.99, 28.0)] * 2), STATIC: runs(*[(1.0, 25.0)] * 2)}
    )
    assert (found["tail-aware"].beaten_by, found["linear"].beaten_by) == ("static-2", "static-2")
    assert (found["tail-aware"].in_sla, found["tail-aware"].least_in_sla) == (0.99, 0.98)


def test_who_keeps_no_order_is_counted_apart() -> None:
    found = rows_of({OURS: runs((0.99, 30.0)), POOL: runs((1.0, 20.0)), STATIC: runs((1.0, 19.0))})
    assert (found["tail-aware"].beaten_by, found["tail-aware"].beaten_by_share_group) == ("static-2", POOL.name)
    assert found[POOL.name].beaten_by == "static-2"
    assert rows_of({OURS: runs((0.99, 30.0)), POOL: runs((1.0, 20.0))})["tail-aware"].beaten_by == ""


def test_differences_are_paired_by_seed() -> None:
    found = rows_of({OURS: runs((0.98, 20.0), (1.0, 40.0)), LINEAR: runs((0.97, 21.0), (0.99, 41.0))})
    dearer, points = found["linear"].replica_minutes_difference, found["linear"].in_sla_difference
    assert dearer == Against(mean=1.0, low=1.0, high=1.0, distinguishable=True)
    assert points is not None
    assert points.mean == pytest.approx(-0.01)
    assert (found["tail-aware"].in_sla_difference, found["tail-aware"].replica_minutes_difference) == (None, None)


def test_the_optimum_is_compared_seed_by_seed_where_it_is_known() -> None:
    best = {
        seed: msgspec.structs.replace(runs((1.0, 1.0))[0], optimum_replica_minutes=least, optimum_lower=least - 1)
        for seed, least in ((1, 25.0), (3, 20.0))
    }
    ours = rows_of({OURS: runs((1.0, 30.0), (1.0, 99.0), (1.0, 22.0))}, best=best)["tail-aware"]
    assert (ours.over_optimum, ours.least_over_optimum) == (pytest.approx(1.15), pytest.approx(1.1))
    assert (ours.optimum_replica_minutes, ours.optimum_lower) == (22.5, 21.5)


@pytest.mark.parametrize("changes", [{}, {"spacing": "smooth"}, {"spacing": "poisson"}, {"decision_interval_s": 2}])
def test_random_phases_are_spread_over_the_interval_whatever_the_spacing(changes: dict[str, Any]) -> None:
    one = world("w1", {"burst_phase_s": "random", **changes})
    interval_s = changes.get("decision_interval_s", 1)
    questions = [run.question() for run in one.experiments("linear", 5)]
    phases = [question.autoscaler.tick_offset_s for question in questions]
    assert [int(5 * phase / interval_s) for phase in phases] == [0, 1, 2, 3, 4]
    assert {question.load.burst_phase_s for question in questions} == {0.0}
    assert one.random("linear")[0] in {"phase", "bursts"}


def test_a_phase_that_was_stated_stays_and_one_seed_says_all() -> None:
    assert [run.seed for run in world("w1").experiments("linear", 5)] == [1]


def test_the_phase_is_what_the_run_says_of_itself() -> None:
    run = world("w1", {"burst_phase_s": "random", "spacing": "smooth", "duration_s": 20}).experiments("linear", 3)[2]
    assert simulated(run).phase_s == run.question().autoscaler.tick_offset_s > 2 / 3


def test_every_player_is_a_question_that_can_be_asked() -> None:
    everybody = [one for name in DEFAULTS for one in candidates(name)]
    assert [everybody.count(one) for one in DEFAULTS.values()] == [1] * len(DEFAULTS), "as it comes is among the tried"
    for player in (*everybody, *constant_counts(STANDARD[0]), *share_groups(STANDARD[0])):
        assert player.in_world(STANDARD[0]).experiments(player.policy, 1)[0].question()
    batches = [one for one in share_groups(world("shared-limit")) if "in batches" in one.name]
    assert not batches, "nothing acquires batches behind a shared limit"


def test_every_world_has_a_name_of_its_own_and_unknown_ones_are_refused() -> None:
    names = [name_of(one) for one in all_worlds()]
    assert len(set(names)) == len(names) == 47
    assert [name_of(one) for one in all_worlds("taxi, step")] == ["taxi", "step"]
    with pytest.raises(InvalidSettingsError, match="no world of the fronts is called stepp"):
        all_worlds("stepp")


def setting(name: str, share: float) -> Player:
    return Player(name, "linear", (("policy.f_up", share),))


def test_the_best_setting_has_the_least_geometric_mean_over_worlds(monkeypatch) -> None:
    """Late events are worth 0.25 s each: 10 of 1000 are 2.5 s. Small world: 60 s at least, large one: 600 s."""
    monkeypatch.setattr("bench.experiments.tuning.DEFAULTS", {"a": None, "b": None})
    small, large = world("w1"), world("w1", {"spacing": "smooth"})
    tight, roomy, other = setting("a", 0.9), setting("a", 0.5), setting("b", 0.9)
    found = {
        tight: {small: runs((0.76, 1.0)), large: runs((1.0, 10.0))},  # 2 and 1 times the least
        roomy: {small: runs((1.0, 1.0), (1.0, 2.0)), large: runs((1.0, 12.0))},  # 1.5 and 1.2 times
        other: {small: runs((1.0, 1.0)), large: runs((1.0, 20.0))},  # 1 and 2 times
    }
    questions = {one: one.experiments("static", 1)[0].question() for one in (small, large)}
    rows = {(row.opponent, row.settings["policy.f_up"]): row for row in chosen(found, questions, 2)}
    assert {key: row.times_best for key, row in rows.items()} == {
        ("a", 0.9): pytest.approx(2**0.5),
        ("a", 0.5): pytest.approx((1.5 * 1.2) ** 0.5),
        ("b", 0.9): pytest.approx(2**0.5),
    }
    assert [key for key, row in rows.items() if row.chosen] == [("a", 0.5), ("b", 0.9)]
    assert [row.kept for row in rows.values()] == [1, 2, 2]


def few(monkeypatch, *these: Player) -> World:
    monkeypatch.setattr(played, "players", lambda _: iter(these))
    return world("w1", {"burst_phase_s": "random", "duration_s": 20})


def test_who_failed_with_a_seed_has_no_row_but_a_reason(tmp_path: Path, monkeypatch) -> None:
    asked = few(monkeypatch, OURS, STATIC)
    rows, missing = fronts(Campaign(tmp_path, 1, work=comparison_work.eventful), [asked], 2)
    assert not rows
    assert {one.why for one in missing} == {"ZeroDivisionError: no replica left"}


def test_a_front_is_simulated_with_its_optimum_and_goes_on_where_it_was(tmp_path: Path, monkeypatch) -> None:
    asked = few(monkeypatch, OURS, STATIC, POOL)
    rows, missing = fronts(Campaign(tmp_path, 1, work=played.played), [asked], 2, optima=1)
    assert not missing
    assert [(row.player, row.seeds, row.duration_s) for row in rows] == [
        (one.name, 2, 20.0) for one in (OURS, STATIC, POOL)
    ]
    assert all(row.over_optimum is not None and row.over_optimum >= 0.99 for row in rows[:2])
    assert fronts(Campaign(tmp_path, 1, work=comparison_work.refused), [asked], 2, optima=1) == (rows, missing)


def test_rows_come_back_as_they_were_kept() -> None:
    row = next(judged("w1", {POOL: runs((1.0, 20.0))}))
    assert msgspec.json.decode(msgspec.json.encode(row), type=FrontFigures) == row
    assert TunedFigures.__struct_fields__[0] == "opponent"
