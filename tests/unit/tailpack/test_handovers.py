"""Handovers beside the latency, second by second."""

from contracts.events import Timeline
from contracts.journal import PlanWritten
from contracts.progress import Progress, ReplicaState, Round, RoundKind
from tailpack.watch import SECONDS, Handovers


def event(done_s: float, latency_s: float) -> Timeline:
    return Timeline(intended_us=round((done_s - latency_s) * 1e6), placed_us=0, done_us=round(done_s * 1e6))


def plan(at_s: float, moved: int, epoch: int = 1) -> PlanWritten:
    return PlanWritten(
        at_us=round(at_s * 1e6), epoch=epoch, action="up", reason="", replicas=(), assignment=None, moved=moved
    )


def report(*rounds: tuple[int, int, float]) -> Progress:
    """rounds: epoch, partitions taken, pause in seconds."""
    return Progress(
        replica="payment-0", incarnation="", pid=1, member_id="", generation=1, epoch=1, assigned_epoch=1,
        state=ReplicaState.MEMBER, partitions=(), positions={}, processed=0, busy_us=0, rebalances=1, at_us=0,
        rounds=tuple(
            Round(generation=1, epoch=epoch, kind=RoundKind.PLAN, members=2, moved=taken, taken=taken, released=0,
                  pause_us=round(pause_s * 1e6), plan_us=0, at_us=0)
            for epoch, taken, pause_s in rounds
        ),
    )  # fmt: skip


def test_each_second_has_its_worst_latency_and_its_moves() -> None:
    seen = Handovers()
    assert seen.curve() == []
    for done_s, latency_s in ((100.1, 0.02), (100.9, 0.05), (102.5, 0.03)):
        seen.finished(event(done_s, latency_s))
    for moved in (3, 0):
        seen.planned(plan(102.2, moved))
    assert (seen.moved, seen.plans) == (3, 1), "a plan that moves nothing is none"
    assert [(second.worst_s, second.moved) for second in seen.curve()] == [(0.05, 0), (0.0, 0), (0.03, 3)]


def test_only_the_last_minute_is_kept() -> None:
    seen = Handovers()
    for second in range(100, 100 + 3 * SECONDS):
        seen.finished(event(second, 0.01))
    seen.finished(event(100, 9.0))
    assert len(seen.curve()) == len(seen.by_second) == SECONDS
    assert max(second.worst_s for second in seen.curve()) < 9.0, "too late to be seen"


def test_the_pause_of_a_plan_is_the_longest_that_any_replica_reports() -> None:
    seen = Handovers()
    assert seen.longest_pause_s == 0.0
    seen.reported(report((4, 1, 0.012), (4, 2, 0.031), (5, 1, 0.008)))
    seen.reported(report((4, 1, 0.020), (6, 0, 0.900)))
    assert seen.pauses_s == {4: 0.031, 5: 0.008}, "who took nothing knows of no pause"
    assert seen.longest_pause_s == 0.031
