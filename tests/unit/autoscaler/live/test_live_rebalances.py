"""t_r: what replicas report of their rounds, what policies are told, and when an operator is warned."""

import pytest
from live_fakes import FakeClock
from live_worlds import started

from autoscaler.live.rebalances import MERGE_S, Rebalances
from contracts.progress import Round, RoundKind


class Told:
    """A learner, and its rounds numbered."""

    def __init__(self, *, learn: bool = True, fixed_s: float = 0.05) -> None:
        self.clock = FakeClock()
        self.warnings: list[str] = []
        self.rebalances = Rebalances(
            fixed_s, learn=learn, latency_target_s=0.5, warn=self.warnings.append, clock=self.clock
        )
        self.generation = 0

    def rounds(self, count: int, *pauses_s: float, kind: RoundKind = RoundKind.PLAN, taken: int = 1) -> None:
        """`count` rounds, each reported by as many replicas as there are pauses."""
        for _ in range(count):
            self.generation += 1
            self.rebalances.observe(round_of(self.generation, pause_s, kind, taken) for pause_s in pauses_s)
        self.clock.advance(MERGE_S)
        self.rebalances.observe(())


def round_of(
    generation: int, pause_s: float, kind: RoundKind = RoundKind.PLAN, taken: int = 1, members: int = 3
) -> Round:
    return Round(
        generation=generation, epoch=generation, kind=kind, members=members, moved=1, taken=taken, released=0,
        pause_us=round(pause_s * 1e6), plan_us=round(pause_s * 2e6), at_us=0,
    )  # fmt: skip


def test_it_is_the_p99_of_the_longest_pause_of_each_round() -> None:
    told = Told()
    told.rounds(5, 0.010, 0.030, 0.020)
    assert told.rebalances.rebalance_time_s(3, 1) == 0.05, "the setting, until enough was seen"
    told.rounds(95, 0.010, 0.030, 0.020)
    assert told.rebalances.rebalance_time_s(3, 1) == pytest.approx(0.030, rel=0.01)
    assert told.rebalances.learned(3, 1).samples == 100, "one for each round, whoever reports it"
    assert told.warnings == []


def test_reports_of_one_round_that_come_apart_are_one_round() -> None:
    told = Told()
    for _ in range(50):
        told.generation += 1
        told.rebalances.observe([round_of(told.generation, 0.010)])
        told.clock.advance(MERGE_S / 2)
        told.rebalances.observe([round_of(told.generation, 0.040)])
        told.clock.advance(MERGE_S)
        told.rebalances.observe([])
    assert told.rebalances.learned(3, 1).samples == 50
    assert told.rebalances.learned(3, 1).value_s == pytest.approx(0.040, rel=0.01)


def test_a_run_that_repeats_a_published_one_keeps_its_fixed_time() -> None:
    told = Told(learn=False)
    told.rounds(100, 0.2)
    assert told.rebalances.rebalance_time_s(3, 1) == 0.05
    assert told.rebalances.learned(3, 1).value_s == pytest.approx(0.2, rel=0.01), "it can be looked at all the same"


def test_an_operator_is_warned_once_when_handovers_alone_break_the_promise() -> None:
    told = Told()
    told.rounds(100, 0.6)
    for _ in range(3):
        told.rebalances.rebalance_time_s(3, 1)
    (warning,) = told.warnings
    assert "0.6 s (learned from 100 rounds), which reaches the latency target of 0.5 s" in warning


def test_policies_see_what_was_learned() -> None:
    world = started(2)
    assert world.group.observe().rebalance_time_s == 0.05
    world.reports.rounds = [round_of(generation, 0.012, members=2) for generation in range(1, 101)]
    world.step()
    world.step(MERGE_S)
    assert world.group.observe().rebalance_time_s > 0.012, "two partitions move when one of two replicas goes"
    figures = world.group.rebalance_figures()
    assert figures["planned_for_s"] == figures["learned_s"]
    assert figures["rounds_seen"] == 100
