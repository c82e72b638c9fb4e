"""Figures of constructed runs, which are known in advance."""

from dataclasses import replace

import numpy as np
import pytest
from unit.bench.handover.story import at, evidence, row, steady, step

from bench.handover.evidence import UNKNOWN, Row, first_completions
from bench.handover.figures import KNOWN_DEATH, SIGTERM, UNKNOWN_DEATH, failover, faults, handovers
from bench.handover.windows import find_windows

BEFORE = steady(0, "a", begin=0, end=1000)


def moved_partition(pause_ms: float) -> list[Row]:
    """Partition 0 goes from a to b at 1000; its first event at b has waited for `pause_ms` before it was served."""
    first = row(1000, 0, 50, "b", latency_ms=pause_ms + 5)
    return [*BEFORE, first, *steady(0, "b", begin=1100, end=4000)]


def test_moved_and_unmoved_partitions_have_figures_of_their_own() -> None:
    rows = [*moved_partition(pause_ms=45), *steady(1, "a", begin=10, end=4000, latency_ms=7)]
    figures = handovers(evidence(rows, [step("move 1", 995, {0: "b"})], quiet=[(0, 900)]))
    assert (figures["moved_max_s"], figures["unmoved_max_s"]) == (0.05, 0.007)
    assert (figures["plan_to_first_event_s"], figures["handovers"]) == (0.055, 1)
    assert figures["unmoved_extra_s"] == 0


def test_a_planned_move_ends_with_the_first_event_at_the_new_owner() -> None:
    rows = [*BEFORE, *steady(0, "b", begin=1040, end=4000), *steady(1, "a", begin=10, end=4000)]
    (window,) = find_windows(evidence(rows, [step("move 1", 990, {0: "b"})]))
    (handover,) = window.handovers
    assert handover.plan_to_first_event_us == 55_000, "plan at 990, first event intended at 1040 and done at 1045"
    assert (window.ended_us, window.moved, window.missing) == (at(1045 + 1000), {0}, ())


def test_a_move_is_taken_when_its_new_owner_reports_it_and_ownerless_since_the_report_of_the_old_one() -> None:
    claims = [
        (0, "a", {0, 1}),
        (0, "b", {2}),
        (1200, "a", set()),
        (1210, "b", set()),
        (1230, "a", {1}),
        (1250, "b", {0, 2}),
    ]
    found = handovers(evidence(moved_partition(45), [step("move 1", 995, {0: "b"})], claims=claims))
    assert (found["taken_p50_s"], found["ownerless_p50_s"]) == (0.255, 0.05)


def test_a_move_whose_new_owner_never_serves_is_unfinished() -> None:
    story = evidence(steady(0, "a", begin=0, end=3000), [step("move 1", 1000, {0: "b"}, until=2500)])
    figures = handovers(story)
    assert (figures["unfinished"], figures["handovers"]) == (1, 0)
    assert figures["kinds"][0]["moved_events"] > 0, "its events are analysed all the same"


def test_each_way_to_end_has_its_own_worst_event_of_any_partition() -> None:
    rows = [*steady(1, "c", begin=10, end=20_000), row(1105, 2, 7, "c", latency_ms=95)]
    rows += [*BEFORE, row(1000, 0, 50, "b", latency_ms=90)]
    rows += [*steady(0, "b", begin=1020, end=6000), row(6000, 0, 300, "c", latency_ms=6100)]
    rows += [row(12_110, 0, 605, "c"), *steady(0, "c", begin=12_120, end=16_000)]
    rows += [row(16_000, 0, 800, "d", latency_ms=30)]
    steps = [
        step(KNOWN_DEATH, 999, {0: "b"}, until=3000),
        step(UNKNOWN_DEATH, 5999, None, until=14_000),
        step(SIGTERM, 15_999, None, until=18_000),
    ]
    found = failover(evidence(rows, steps))
    assert (found["known_death_max_s"], found["unknown_death_max_s"], found["sigterm_max_s"]) == (0.095, 6.1, 0.03)
    assert (found["kills"], found["sigterms"], found["lost"]) == (2, 1, 0)


def test_lost_and_repeated_events_are_counted_and_the_first_completion_counts() -> None:
    repeat = row(40, 0, 2, "b", latency_ms=60)
    story = evidence([*steady(0, "a", begin=0, end=200), repeat], unfinished=2)
    found = faults(story)
    assert (found["lost"], found["duplicates"], found["order_violations"]) == (2, 1, 0)
    first = first_completions(story.served)
    assert (first["done_us"] - first["intended_us"]).max() == 5000


def test_events_overtaken_within_their_partition_are_order_violations() -> None:
    late = [row(0, 0, 0, "a", latency_ms=50), row(10, 0, 1, "a", latency_ms=45)]
    story = evidence([*late, row(20, 0, 2, "b"), row(30, 1, 0, "a"), row(40, 0, 3, "b")])
    assert faults(story)["order_violations"] == 2, "offsets 0 and 1 were finished after 2; partition 1 is in order"


@pytest.mark.parametrize(
    ("samples", "expected"),
    [
        ([], 0),
        ([[0, 5], [3, 5], [3, 9]], 0),
        ([[4, 5], [3, 4], [2, 3]], 4),
        ([[4, UNKNOWN], [UNKNOWN, 1], [5, 1]], 0),
        ([[4, 1], [UNKNOWN, 1], [3, 1]], 1),
    ],
    ids=["no sample", "growing", "further back each time", "not there yet", "back behind a gap"],
)
def test_a_committed_offset_below_an_earlier_one_is_a_regression(samples: list[list[int]], expected: int) -> None:
    story = replace(evidence([row(0, 0, 0, "a")]), committed=np.array(samples, dtype=np.int64))
    assert faults(story)["offset_regressions"] == expected
