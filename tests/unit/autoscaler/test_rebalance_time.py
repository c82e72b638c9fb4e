"""Tests of the learned rebalance time (t_r) and its warning."""

from live_worlds import started

from autoscaler.estimation.rebalance_time import MAX_PAUSES, MIN_PAUSES, RebalanceTime
from contracts.progress import Rebalance, RebalanceKind


def pause(pause_s: float, kind: RebalanceKind = RebalanceKind.PLAN) -> Rebalance:
    return Rebalance(
        generation=1, epoch=1, kind=kind, members=3, moved=1, taken=1, released=0,
        pause_us=round(pause_s * 1e6), at_us=0
    )  # fmt: skip


def learner(*pauses_s: float, learn: bool = True) -> tuple[RebalanceTime, list[str]]:
    warnings: list[str] = []
    made = RebalanceTime(0.05, learn=learn, latency_target_s=0.5, warn=warnings.append)
    made.observe(pauses_s)
    return made, warnings


def test_the_learned_time_is_the_p99_of_the_kept_planned_pauses() -> None:
    made, warnings = learner(*[0.01] * (MIN_PAUSES - 1))
    made.observe([0.0])
    assert (made.learned_s, made.planned_s()) == (None, 0.05), "the setting, until enough pauses were observed"
    made.observe([0.03])
    assert made.planned_s() == 0.03, "the longest of few"
    made.observe([number / 1000 for number in range(1, MAX_PAUSES + 1)])
    assert made.planned_s() == 0.199, "the next pause is not longer with a probability of 99 %"
    assert (made.pause_count, warnings) == (MIN_PAUSES + MAX_PAUSES, [])


def test_the_setting_is_used_if_learning_is_off() -> None:
    made, _ = learner(*[0.2] * 100, learn=False)
    assert (made.planned_s(), made.learned_s) == (0.05, 0.2)


def test_a_warning_appears_once_if_handovers_reach_the_latency_target() -> None:
    made, warnings = learner(*[0.6] * 100)
    for _ in range(3):
        made.planned_s()
    assert len(warnings) == 1
    assert "0.6 s" in warnings[0]


def test_policies_get_the_learned_time() -> None:
    world = started(2)
    assert world.group.observe().rebalance_time_s == 0.05
    unplanned = [pause(9.0, RebalanceKind.DEATH), pause(9.0, RebalanceKind.MEMBERSHIP)]
    world.reports.rebalances = [*unplanned, *[pause(0.012)] * 100]
    world.step()
    assert world.group.observe().rebalance_time_s == 0.012
    assert world.group.page()["rebalance_time"] == {"planned_for_s": 0.012, "learned_s": 0.012, "pauses_seen": 100}
