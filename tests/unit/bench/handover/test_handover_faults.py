"""Lost, repeated and disordered events, and offsets that went back, are counted one by one."""

import numpy as np
import pytest
from unit.bench.handover.story import evidence, row, steady

from bench.handover.evidence import UNKNOWN
from bench.handover.faults import duplicates, lost, offset_regressions, order_violations


def test_an_event_that_the_broker_took_and_nobody_finished_is_lost() -> None:
    story = evidence(steady(0, "a", begin=0, end=200), unfinished=[55, 77])
    assert lost(story.sent_us, story.served) == 2


def test_a_repeat_is_a_duplicate_and_loses_nothing() -> None:
    story = evidence([*steady(0, "a", begin=0, end=100), row(40, 0, 2, "b", latency_ms=60)])
    assert duplicates(story.served) == 1
    assert lost(story.sent_us, story.served) == 0


def test_the_first_completion_of_an_event_counts() -> None:
    story = evidence([row(0, 0, 0, "a", latency_ms=5), row(0, 0, 0, "b", latency_ms=90)])
    first = story.served.first_completions()
    assert first.latency_us.tolist() == [5000]
    assert first.names[first.replica[0]] == "a"


def test_events_overtaken_within_their_partition_are_order_violations() -> None:
    late = [row(0, 0, 0, "a", latency_ms=50), row(10, 0, 1, "a", latency_ms=45)]
    story = evidence([*late, row(20, 0, 2, "b"), row(30, 1, 0, "a"), row(40, 0, 3, "b")])
    assert order_violations(story.served) == 2, "offsets 0 and 1 were finished after 2; partition 1 is in order"


def test_a_repeat_after_a_crash_is_no_order_violation() -> None:
    story = evidence([*steady(0, "a", begin=0, end=100), row(20, 0, 1, "b", latency_ms=100)])
    assert order_violations(story.served) == 0


@pytest.mark.parametrize(
    ("samples", "expected"),
    [
        ([], 0),
        ([[0, 5], [3, 5], [3, 9]], 0),
        ([[4, 5], [3, 5], [9, 5]], 1),
        ([[4, 5], [3, 4], [2, 3]], 4),
        ([[4, UNKNOWN], [UNKNOWN, 1], [5, 1]], 0),
        ([[4, 1], [UNKNOWN, 1], [3, 1]], 1),
    ],
    ids=["no sample", "growing", "back once", "further back each time", "not there yet", "back behind a gap"],
)
def test_a_committed_offset_below_an_earlier_one_is_a_regression(samples: list[list[int]], expected: int) -> None:
    assert offset_regressions(np.array(samples, dtype=np.int64)) == expected
