"""When the whole group stood still, and when a replica was starting: plain intervals."""

from contracts.journal import ReplicaChange, ReplicaChanged
from report.history import Span, starting, union
from report.lateness import AFTER_CHANGE_US, stops


def test_a_standstill_needs_a_change_of_the_group_shortly_before() -> None:
    slots = [100, 101, 102, 107]
    assert stops(slots, 20, 60, [2_000 - AFTER_CHANGE_US]) == [(2_000, 2_060)]
    assert stops(slots, 20, 60, [1_999 - AFTER_CHANGE_US, 2_060]) == []
    assert stops(slots, 20, 61, [2_000]) == [], "too short"


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
