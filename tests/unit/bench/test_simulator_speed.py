"""The speed measurement serves all that it says it served; the speeds themselves are the machine's."""

import pytest

from bench.simulator_speed import ENGINE, POOL, measure


def test_a_row_is_about_the_workload_that_was_asked_for():
    for row in (
        measure(ENGINE, events=12_345, partitions=9, replicas=3),
        measure(POOL, events=12_345, partitions=9, replicas=3),
        measure("linear", events=12_345, partitions=9, replicas=3),
    ):
        assert (row.events, row.partitions, row.replicas) == (12_345, 9, 3)
        assert row.events_per_s == pytest.approx(row.events / row.process_s)


def test_a_whole_run_says_what_its_policy_took_and_how_much_memory():
    row = measure("algorithm-2", events=12_345, partitions=9, replicas=3)

    assert row.measured == "algorithm-2"
    assert 0 < row.policy_s < row.process_s
    assert row.peak_mb > 10
