"""Takeovers are grouped into rebalances, with their kind and the pause of their events."""

from contracts.journal import PlanWritten, ReplicaChange, ReplicaChanged
from report.history import Journal
from report.rebalances import Deaths, Takeover, group_takeovers
from report.result import RebalanceRecord
from report.terms import Terms, TypicalTimes

MS = 1_000
STARTED_US = 1_700_000_000_000_000


def plan(at_ms: int, epoch: int, *owners: str, moved: int = 0) -> PlanWritten:
    return PlanWritten(
        at_us=at_ms * MS, epoch=epoch, action="up", reason="", replicas=tuple(sorted(set(owners))),
        assignment=dict(enumerate(owners)), moved=moved,
    )  # fmt: skip


def change(
    partition: int, old: str, new: str, left_ms: int, came_ms: int, *, epoch: int | None = 2, sent_ms: int | None = None
) -> Takeover:
    sent = {} if sent_ms is None else {"sent_us": sent_ms * MS}
    return Takeover(partition, old, new, left_ms * MS, came_ms * MS, epoch, **sent)


def grouped(*found: Takeover, plans: list[PlanWritten], gone: tuple[ReplicaChanged, ...] = ()) -> list[RebalanceRecord]:
    terms = Terms(started_us=0, target_us=500 * MS, typical=TypicalTimes(transit_us=2 * MS))
    return group_takeovers(found, plans, Deaths(Journal([*plans, *gone])), terms)


PLANS = [plan(0, 1, "a", "a", "a"), plan(1_000, 2, "a", "b", "c", moved=2)]


def test_the_takeovers_of_a_plan_are_one_rebalance_with_the_longest_pause() -> None:
    (found,) = grouped(
        change(1, "a", "b", 1_010, 1_040, sent_ms=1_000), change(2, "a", "c", 1_010, 1_060, sent_ms=1_020), plans=PLANS
    )
    assert found == RebalanceRecord(at_s=1.06, kind="plan", members=3, moved=2, pause_s=0.038, plan_to_ready_s=0.06), (
        "the event of partition 2 arrived at 1,022 ms and waited for 38 ms, that of partition 1 waited from 1,010 ms on"
    )


def test_a_gap_in_the_load_is_not_a_pause() -> None:
    (idle,) = grouped(change(1, "a", "b", 1_010, 1_900, sent_ms=1_895), plans=PLANS)
    assert (idle.moved, idle.pause_s, idle.plan_to_ready_s) == (2, None, None), "the event arrived after the rebalance"
    (unknown,) = grouped(change(1, "a", "b", 1_010, 1_900), plans=PLANS)
    assert unknown.pause_s is None


def test_partitions_of_a_dead_replica_move_by_plan_or_by_membership() -> None:
    died = ReplicaChanged(at_us=1_005 * MS, replica="a", change=ReplicaChange.DIED)
    by_plan, by_group = grouped(
        change(1, "a", "b", 1_000, 1_300, sent_ms=1_010),
        change(2, "a", "b", 1_000, 1_400, sent_ms=1_010),
        plans=PLANS,
        gone=(died,),
    )
    assert (by_plan.kind, by_plan.pause_s, by_plan.plan_to_ready_s) == ("death", 0.288, 0.3)
    assert (by_group.kind, by_group.moved, by_group.plan_to_ready_s) == ("membership", 1, None)
