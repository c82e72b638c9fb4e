"""A journal explains each decision: change, reason, compared plans, and what followed."""

import command_line
import msgspec
import pytest

from contracts.journal import PartitionState, PlanAlternative, PlanWritten, ReplicaChange, ReplicaChanged, TickRecord
from tailpack.cli.explain import explain_why_not as why_not
from tailpack.cli.explain import explained as explain
from tailpack.cli.explain import lines, select
from tailpack.errors import TailpackError

START_S = 1_767_225_600
"""2026-01-01 00:00:00 UTC."""


def tick(second, action="no-change", planned=1, lag=10, epoch=1, **more):
    owners = ("payment-0", "payment-0" if epoch == 1 else "payment-1")
    states = (PartitionState(partition=n, arrival_rate=5.0, lag=lag, owner=owner) for n, owner in enumerate(owners))
    return TickRecord(
        at_us=(START_S + second) * 10**6, tick=second, policy="tail-aware", action=action, reason=f"reason {second}",
        service_rate=200.0, partitions=tuple(states), ready_replicas=planned, requested_replicas=1 if epoch == 1 else 2,
        planned_replicas=planned, epoch=epoch, **more,
    )  # fmt: skip


ALTERNATIVES = (
    PlanAlternative(replicas=2, moved=1, in_sla=1.0, cost_s=3.1),
    PlanAlternative(replicas=1, moved=0, in_sla=0.985, cost_s=11.6),
)
JOURNAL = [
    *(tick(second) for second in range(5)),
    tick(5, "up", 2, lag=40, alternatives=ALTERNATIVES),
    ReplicaChanged(at_us=(START_S + 5) * 10**6, replica="payment-1", change=ReplicaChange.REQUESTED),
    ReplicaChanged(at_us=(START_S + 7) * 10**6, replica="payment-1", change=ReplicaChange.READY),
    PlanWritten(
        at_us=(START_S + 7) * 10**6, epoch=2, action="up", reason="reason 5", replicas=("payment-0", "payment-1"),
        assignment={0: "payment-0", 1: "payment-1"}, moved=1,
    ),
    *(tick(second, planned=2, epoch=2, lag=3) for second in range(8, 20)),
]  # fmt: skip


def test_a_change_has_its_moves_reason_alternatives_and_effect_and_no_changes_are_folded():
    before, change, after = explain(JOURNAL)
    assert (before.times, after.times) == (5, 12)
    assert [*lines(change)] == [
        "00:00:05  up 1 → 2 replicas, plan 2; 1 moved: p1 → payment-1",
        "  why       reason 5",
        "  compared  2 replicas, 1 moved: 100 % in time at cost 3.1",
        "  compared  1 replica, 0 moved: 98.5 % in time at cost 11.6",
        "  after 10 s  80 → 6 events waiting, 2 replicas ready, payment-1 ready after 2.00 s",
    ]
    assert [*lines(change, 1)] == [*[*lines(change)][:4], f"  why not   {why_not(change, 1)}", *[*lines(change)][4:]]
    assert why_not(change, 1).startswith("1 replica, 0 moved: 98.5 % in time at cost 11.6; chosen: 2 replicas")
    assert "3 was not compared; the counts are 2, 1" in why_not(change, 3)
    assert "it follows a rule" in why_not(before, 3)


def test_decisions_are_selected_by_plan_time_or_last():
    found = explain(JOURNAL)
    assert select(found, "last") == found[1:]
    assert select(found, "2") == select(found, "00:00:06") == found[1:2]
    assert select(found, "all") == found
    for which, reason in {"7": "plan 7", "23:59": "neither", "00:00": "neither"}.items():
        with pytest.raises(ValueError, match=reason):
            select(found, which)


def test_a_decision_has_only_its_own_plan():
    plan = next(entry for entry in JOURNAL if isinstance(entry, PlanWritten))
    changes = ({"action": "repair"}, {"reason": "reason 6"}, {"at_us": (START_S + 9) * 10**6})
    others = [msgspec.structs.replace(plan, epoch=epoch, **more) for epoch, more in enumerate(changes, 2)]
    assert all(one.epoch == 1 and not one.moves for one in explain([tick(5, "up", 2), tick(8, "down", 1), *others]))


def test_a_limited_decision_names_the_rail_and_what_was_wanted():
    (limited,) = explain([tick(0, "up", 2, rails=("max", "max_step_up"), uncapped=9)])
    assert "  rails     max, max_step_up; without: 9 replicas" in [*lines(limited)]
    free, again, bound = explain([tick(0), tick(1, epoch=2), tick(2, epoch=2, rails=("window",), uncapped=1)])
    assert (free.rails, again.rails, bound.rails) == ((), (), ("window",)), "another rail is not folded"


def test_a_time_is_the_latest_one_before_the_end_of_the_journal():
    found = explain([tick(-600, "up", 2), tick(-200, "down", 1), *(tick(second) for second in range(300, 400))])
    assert select(found, "23:50:00") == select(found, "23:55:00") == found[:1]
    assert select(found, "0:00:05") == select(found, "00:04:59") == found[1:2]
    assert select(found, "0:06:00") == found[2:]
    with pytest.raises(ValueError, match="from 23:50:00 to 00:06:39"):
        select(found, "23:49:59")


def test_a_folder_without_a_journal_is_one_line(tmp_path):
    with pytest.raises(TailpackError, match="has no journal"):
        command_line.run("explain", "--run", tmp_path)
