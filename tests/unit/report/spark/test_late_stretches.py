"""Where standstills are looked for, and when the whole group stood still: plain intervals."""

from contracts.journal import ReplicaChange, ReplicaChanged
from report.spark.busy import EARLIEST_S
from report.spark.group_history import Span, starting, union
from report.spark.standstill import AFTER_CHANGE_US, slot_us, stops
from report.spark.stretches import Stretch, stretches
from report.spark.terms import Terms

SECOND = 1_000_000
TERMS = Terms(started_us=100 * SECOND, target_us=SECOND // 2, shown_s=60)


def at(second: float) -> int:
    return TERMS.started_us + int(second * SECOND)


def test_a_stretch_begins_three_seconds_before_its_first_late_event() -> None:
    assert stretches([(30, at(29.5))], TERMS) == [Stretch(26, 30)]


def test_stretches_that_touch_are_one() -> None:
    assert stretches([(50, at(50)), (43, at(43)), (46, at(45))], TERMS) == [Stretch(40, 50)]
    assert stretches([(50, at(50)), (30, at(30))], TERMS) == [Stretch(27, 30), Stretch(47, 50)]


def test_a_long_target_is_looked_back_for_twice() -> None:
    patient = Terms(started_us=0, target_us=20 * SECOND, shown_s=600)
    assert stretches([(200, 170 * SECOND)], patient) == [Stretch(130, 200)]


def test_absurd_times_make_no_long_stretch() -> None:
    assert stretches([(30, 0), (10**9, at(0))], TERMS) == [Stretch(EARLIEST_S, 30)]


def test_a_standstill_needs_a_change_of_the_group_shortly_before() -> None:
    slots = [100, 101, 102, 107]
    assert stops(slots, 20, 60, [2_000 - AFTER_CHANGE_US]) == [(2_000, 2_060)]
    assert stops(slots, 20, 60, [1_999 - AFTER_CHANGE_US, 2_060]) == []
    assert stops(slots, 20, 61, [2_000]) == [], "too short"


def test_nobody_who_serves_can_pass_a_slot_unseen() -> None:
    assert slot_us(5_000) == 20_000
    assert slot_us(50_000) == 100_000


def change(second: int, replica: str, kind: ReplicaChange) -> ReplicaChanged:
    return ReplicaChanged(at_us=second, replica=replica, change=kind)


def test_a_replica_is_starting_from_its_request_until_it_is_ready_or_gone() -> None:
    changes = [
        change(1, "a", ReplicaChange.REQUESTED),
        change(2, "a", ReplicaChange.STARTED),
        change(4, "a", ReplicaChange.READY),
        change(3, "b", ReplicaChange.REQUESTED),
        change(9, "b", ReplicaChange.DIED),
        change(20, "c", ReplicaChange.REQUESTED),
    ]
    found = starting(changes, until_us=30)
    assert sorted(found, key=lambda span: span.replica) == [Span("a", 1, 4), Span("b", 3, 9), Span("c", 20, 30)]
    assert union(found) == [(1, 9), (20, 30)]
