"""Which partitions changed hands together, by whose doing, and what their events noticed of it."""

from typing import Any

from late_story import stored

from contracts.journal import PlanWritten, ReplicaChange, ReplicaChanged
from report import seconds
from report.rebalances import APART_US, Change, changes, rounds
from report.result import RebalanceRound
from report.takeovers import stays
from report.terms import Terms

MS = 1_000
STARTED_US = 1_700_000_000_000_000


def plan(at_ms: int, epoch: int, *owners: str, moved: int = 0) -> PlanWritten:
    return PlanWritten(
        at_us=at_ms * MS, epoch=epoch, action="up", reason="", replicas=tuple(sorted(set(owners))),
        assignment=dict(enumerate(owners)), moved=moved,
    )  # fmt: skip


def change(
    partition: int, old: str, new: str, left_ms: int, came_ms: int, *, epoch: int | None = 2, sent_ms: int | None = None
) -> Change:
    sent_us = None if sent_ms is None else sent_ms * MS
    return Change(partition, old, new, left_ms * MS, came_ms * MS, epoch, sent_us=sent_us)


def told(*found: Change, plans: list[PlanWritten], gone: tuple[ReplicaChanged, ...] = ()) -> list[RebalanceRound]:
    return rounds(found, plans, gone, started_us=0, transit_us=2 * MS)


PLANS = [plan(0, 1, "a", "a", "a"), plan(1_000, 2, "a", "b", "c", moved=2)]


def test_what_one_plan_moved_is_one_round_as_long_as_its_longest() -> None:
    (one,) = told(
        change(1, "a", "b", 1_010, 1_040, sent_ms=1_000),
        change(2, "a", "c", 1_010, 1_060, sent_ms=1_020),
        plans=PLANS,
    )
    assert one == RebalanceRound(at_s=1.06, kind="plan", members=3, moved=2, pause_s=0.038, plan_to_ready_s=0.06), (
        "of partition 2 an event was sent at 1,020 ms, and there 2 ms later; that of partition 1 waited from 1,010 on"
    )


def test_a_gap_in_the_load_is_no_pause() -> None:
    (idle,) = told(change(1, "a", "b", 1_010, 1_900, sent_ms=1_895), plans=PLANS)
    assert (idle.moved, idle.pause_s, idle.plan_to_ready_s) == (2, None, None), "it came after all was over"
    (unknown,) = told(change(1, "a", "b", 1_010, 1_900), plans=PLANS)
    assert unknown.pause_s is None


def test_the_heirs_of_a_dead_replica_by_a_plan_and_without_one() -> None:
    died = ReplicaChanged(at_us=1_005 * MS, replica="a", change=ReplicaChange.DIED)
    by_plan, by_group = told(
        change(1, "a", "b", 1_000, 1_300, sent_ms=1_010),
        change(2, "a", "b", 1_000, 1_400, sent_ms=1_010),
        plans=PLANS,
        gone=(died,),
    )
    assert (by_plan.kind, by_plan.pause_s, by_plan.plan_to_ready_s) == ("death", 0.288, 0.3)
    assert (by_group.kind, by_group.moved, by_group.plan_to_ready_s) == ("membership", 1, None)


def test_the_group_may_rebalance_twice_under_one_plan() -> None:
    apart_ms = APART_US // MS
    found = told(
        change(1, "b", "a", 2_000, 2_100, sent_ms=2_000),
        change(2, "c", "a", 2_000, 2_200, sent_ms=2_000),
        change(1, "a", "c", 9_000, 2_101 + apart_ms * 2, sent_ms=9_000),
        plans=PLANS,
    )
    assert [(one.kind, one.moved) for one in found] == [("membership", 2), ("membership", 1)]


def row(k: int, partition: int, sent_ms: int, received_ms: int, *, served: tuple[str, int]) -> dict[str, Any]:
    times = {"intended_us": sent_ms, "placed_us": sent_ms, "received_us": received_ms, "done_us": received_ms + 5}
    found: dict[str, Any] = {name: STARTED_US + at_ms * MS for name, at_ms in times.items()}
    found |= {"partition": partition, "offset": k, "replica": served[0], "epoch": served[1]}
    return found | {"dead_letters": 0}


def test_a_plan_that_moves_one_of_two_partitions_is_a_round() -> None:
    stays_put = [row(k, 0, 100 * k, 100 * k + 1, served=("a", 1 if k < 10 else 2)) for k in range(20)]
    before = [row(100 + k, 1, 100 * k, 100 * k + 10, served=("a", 1)) for k in range(10)]
    after = [row(110 + k, 1, 1_000 + 100 * k, 1_060 + 100 * k, served=("b", 2)) for k in range(10)]
    events = stored(stays_put + before + after)
    terms = Terms(STARTED_US, 500 * MS, 3)
    plans = [
        PlanWritten(
            at_us=STARTED_US + at_ms * MS, epoch=epoch, action="up", reason="", replicas=replicas,
            assignment=owners, moved=epoch - 1,
        )
        for at_ms, epoch, replicas, owners in (
            (-500, 1, ("a",), {0: "a", 1: "a"}), (1_010, 2, ("a", "b"), {0: "a", 1: "b"}),
        )
    ]  # fmt: skip

    found = changes(events, stays(seconds.served(seconds.cells(events, terms)), {}))

    (change,) = found
    assert (change.partition, change.old, change.new, change.epoch) == (1, "a", "b", 2)
    assert change.left_us == STARTED_US + 915 * MS
    assert change.came_us == STARTED_US + 1_060 * MS
    assert change.sent_us == STARTED_US + 1_000 * MS
    (one,) = rounds(found, plans, (), STARTED_US, 1 * MS)
    assert (one.kind, one.members, one.moved) == ("plan", 2, 1)
    assert (one.pause_s, one.plan_to_ready_s) == (0.05, 0.05), (
        "145 ms without an event; one waited for 50 since the plan"
    )
