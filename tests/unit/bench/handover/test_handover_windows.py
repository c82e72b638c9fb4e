"""A window runs from the plan's record until a second after the last first event; the events show who owns what."""

from unit.bench.handover.story import at, evidence, row, steady, step

from bench.handover.evidence import Move
from bench.handover.windows import find_windows, stall_us

BEFORE = steady(0, "a", begin=0, end=1000)
AFTER = steady(0, "b", begin=1040, end=4000)
OTHER = steady(1, "a", begin=10, end=4000)


def test_a_planned_move_ends_with_the_first_event_at_the_new_owner() -> None:
    story = evidence([*BEFORE, *AFTER, *OTHER], [step("move 1", 990, [(0, "a", "b")])])
    (window,) = find_windows(story)
    (handover,) = window.handovers
    assert handover.plan_to_first_event_us == 55_000, "plan at 990, first event intended at 1040 and done at 1045"
    assert window.ended_us == at(1045 + 1000)
    assert window.moved == {0}
    assert window.missing == ()


def test_the_pause_is_counted_only_while_an_event_waits() -> None:
    waiting = row(1000, 0, 50, "b", latency_ms=80)
    story = evidence([*BEFORE, waiting, *steady(0, "b", begin=1100, end=4000)], [step("move 1", 970, [(0, "a", "b")])])
    (handover,) = find_windows(story)[0].handovers
    assert handover.left_us == at(985), "the old owner finished the event of 980"
    assert handover.pause_us == 75_000, "waiting since 1000, started at 1075"


def test_a_move_that_the_next_plan_overtook_is_superseded() -> None:
    rows = [*BEFORE, *steady(0, "c", begin=1040, end=3000)]
    steps = [step("random", 990, [(0, "a", "b")]), step("random", 1000, [(0, "b", "c")])]
    first, second = find_windows(evidence(rows, steps))
    assert first.superseded == (Move(0, "a", "b"),)
    assert first.missing == ()
    assert [one.move.target for one in second.handovers] == ["c"]


def test_a_stall_is_the_longest_time_without_a_completion_while_an_event_waits() -> None:
    rows = [row(0, 0, 0, "a"), row(100, 0, 1, "a", latency_ms=60), row(400, 1, 0, "b")]
    served = evidence(rows).served
    assert stall_us(served, at(0), at(1000)) == 60_000, "idle time between events is no stall"
    assert stall_us(served, at(130), at(1000)) == 30_000, "only what lies within counts"
    assert stall_us(evidence([]).served, at(0), at(1000)) == 0
