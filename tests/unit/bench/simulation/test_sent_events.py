"""A simulated run sends the same events as the live load, or those of a trace."""

import numpy as np
import pytest

from bench.scenario import load_scenario
from bench.simulation.sent_events import CHUNK_EVENTS, build_events
from loadgen.schedule import Spacing, Split
from loadgen.trace import Trace

TOTALS = Trace("mine.csv", np.array([10, 0, 7]))


def table_of(chunks, seconds, partitions):
    table = np.zeros((seconds, partitions), dtype=np.int64)
    for chunk in chunks:
        np.add.at(table, (chunk.intended_us // 1_000_000, chunk.partition), 1)
    return table


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("w1", {}),
        ("w1", {"split": "random"}),
        ("w1", {"spacing": "poisson", "split": "random"}),
        ("w1-skew9", {}),
        ("w1", {"burst_period_s": 0.7}),
        ("w1-skew9", {"burst_phase_s": 0.9, "burst_jitter_s": 0.5}),
    ],
)
def test_the_table_counts_the_events_of_each_second_and_partition(name, changes) -> None:
    sent = build_events(load_scenario(name, changes))
    assert np.array_equal(sent.table(), table_of(sent.workload().chunks, sent.duration_s, sent.partitions))
    assert sent.events == sent.table().sum()


def test_a_long_run_comes_in_parts() -> None:
    sent = build_events(load_scenario("taxi"))
    sizes = [len(chunk) for chunk in sent.workload().chunks]
    assert len(sizes) > 1
    assert max(sizes) < CHUNK_EVENTS + 400
    assert sum(sizes) == sent.events == 1_326_203
    assert sum(len(chunk) for chunk in sent.workload().chunks) == sent.events, "it can be sent again"


def test_a_trace_replaces_rate_and_duration_and_nothing_else() -> None:
    sent = build_events(load_scenario("w1"), TOTALS)
    assert (sent.duration_s, sent.partitions, sent.split, sent.spacing) == (3, 5, Split.EVEN, Spacing.BURST)
    assert sent.table().tolist() == [[2] * 5, [0] * 5, [2, 2, 1, 1, 1]]
