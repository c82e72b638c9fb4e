"""t_r: what replicas report of their pauses, what policies are told, and when an operator is warned."""

from live_worlds import started

from autoscaler.estimation.rebalance_time import MAX_PAUSES, MIN_PAUSES, RebalanceTime
from contracts.progress import Rebalance, RebalanceKind


def pause(pause_s: float, kind: RebalanceKind = RebalanceKind.PLAN) -> Rebalance:
    return Rebalance(
        generation=1, epoch=1, kind=kind, members=3, moved=1, taken=1, released=0,
        pause_us=round(pause_s * 1e6), plan_us=0, at_us=0,
    )  # fmt: skip


def learner(*pauses_s: float, learn: bool = True) -> tuple[RebalanceTime, list[str]]:
    said: list[str] = []
    made = RebalanceTime(0.05, learn=learn, latency_target_s=0.5, warn=said.append)
    made.observe(pauses_s)
    return made, said


def test_it_is_the_p99_of_the_planned_pauses_that_are_remembered() -> None:
    made, said = learner(*[0.01] * (MIN_PAUSES - 1))
    made.observe([0.0])
    assert (made.learned_s, made.planned_s()) == (None, 0.05), "the setting, until enough was seen"
    made.observe([0.03])
    assert made.planned_s() == 0.03, "of few the longest"
    made.observe([number / 1000 for number in range(1, MAX_PAUSES + 1)])
    assert made.planned_s() == 0.199, "at or below it is the next pause with a probability of 99 %"
    assert (made.pause_count, said) == (MIN_PAUSES + MAX_PAUSES, [])


def test_a_run_that_repeats_a_published_one_keeps_its_fixed_time() -> None:
    made, _ = learner(*[0.2] * 100, learn=False)
    assert (made.planned_s(), made.learned_s) == (0.05, 0.2)


def test_an_operator_is_warned_once_when_handovers_alone_break_the_promise() -> None:
    made, said = learner(*[0.6] * 100)
    for _ in range(3):
        made.planned_s()
    assert len(said) == 1
    assert "up to 0.6 s, which reaches the latency target of 0.5 s" in said[0]


def test_policies_see_what_was_learned() -> None:
    world = started(2)
    assert world.group.observe().rebalance_time_s == 0.05
    unplanned = [pause(9.0, RebalanceKind.DEATH), pause(9.0, RebalanceKind.MEMBERSHIP)]
    world.reports.rebalances = [*unplanned, *[pause(0.012)] * 100]
    world.step()
    assert world.group.observe().rebalance_time_s == 0.012
    assert world.group.page()["rebalance_time"] == {"planned_for_s": 0.012, "learned_s": 0.012, "pauses_seen": 100}
