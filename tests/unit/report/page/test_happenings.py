"""What happened in a run, in order, with the words that explain it."""

import msgspec
from example_report import example

from report.page.happenings import (
    PLANS_EXPLAINED,
    OwnerChange,
    decisions_shown,
    happenings,
    owner_changes,
    tenures,
)
from report.result import DecisionMade, HeatMap

HEAT = HeatMap(
    cell_s=2.0,
    partitions=(4, 5, 7),
    max_s=((0.1,) * 4, (0.1,) * 4, (None,) * 4),
    owners=(("a", "a", "b", "b"), (None, "a", None, "b"), (None,) * 4),
)


def test_an_owner_serves_until_another_is_seen() -> None:
    held = tenures(HEAT)
    assert held == {4: [(0.0, "a"), (4.0, "b")], 5: [(2.0, "a"), (6.0, "b")], 7: []}
    assert owner_changes(held) == [OwnerChange(4.0, 4, "a", "b"), OwnerChange(6.0, 5, "a", "b")]


def test_without_owners_nobody_changed() -> None:
    assert tenures(None) == {}
    assert owner_changes(tenures(msgspec.structs.replace(HEAT, owners=()))) == []


def test_partitions_that_move_together_are_one_happening() -> None:
    heat = msgspec.structs.replace(HEAT, owners=(("a", "b"), ("a", "b"), ("a", "c")))
    run = msgspec.structs.replace(example(), decisions=(), failures=())
    told = happenings(run, tenures(heat))
    assert [(one.at_s, one.kind, one.words) for one in told] == [
        (2.0, "handover", "handover a → b: partitions 4, 5; a → c: partition 7")
    ]


def test_all_kinds_stand_in_one_order() -> None:
    told = happenings(example(), tenures(example().heat))
    assert [one.at_s for one in told] == sorted(one.at_s for one in told)
    assert {one.kind for one in told} == {"up", "down", "handover", "failure"}
    assert any(one.words == "payment-1 died (killed by signal 9)" for one in told)


def test_of_very_many_plans_those_that_moved_the_most_are_explained() -> None:
    plans = tuple(
        DecisionMade(at_s=float(k), epoch=k, action="up", replicas=2, moved=k % 2, reason="r")
        for k in range(2 * PLANS_EXPLAINED + 2)
    )
    run = msgspec.structs.replace(example(), decisions=plans, failures=())
    shown = decisions_shown(run)
    assert len(shown) == PLANS_EXPLAINED
    assert all(made.moved for made in shown)
    told = happenings(run, {})
    assert len(told) == len(plans), "the others keep their mark"
    assert sum(bool(one.words) for one in told) == PLANS_EXPLAINED
