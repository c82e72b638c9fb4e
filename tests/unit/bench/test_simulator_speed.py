"""The speed measurement serves all that it says it served; the speeds themselves are the machine's."""

import pytest

from bench import simulator_speed
from bench.simulator_speed import POOL, SpeedRow, measure, measure_all, measure_run


def test_a_row_is_about_the_workload_that_was_asked_for():
    for row in (
        measure(events=12_345, partitions=9, replicas=3),
        measure(POOL, events=12_345, partitions=9, replicas=3),
        measure_run("linear", events=12_345, partitions=9, replicas=3),
    ):
        assert (row.events, row.partitions, row.replicas) == (12_345, 9, 3)
        assert row.events_per_s == pytest.approx(row.events / row.process_s)


def test_a_whole_run_says_what_its_policy_took_and_how_much_memory():
    row = measure_run("algorithm-2", events=12_345, partitions=9, replicas=3)

    assert row.measured == "algorithm-2"
    assert 0 < row.policy_s < row.process_s
    assert row.peak_mb > 10


def test_chunks_are_whole_seconds_and_hold_every_event(monkeypatch):
    monkeypatch.setattr(simulator_speed, "CHUNK_EVENTS", 250)
    chunks = list(simulator_speed._chunks(events=650, partitions=5, rate=100))

    assert [(len(chunk), seconds) for chunk, seconds in chunks] == [(200, 2), (200, 2), (200, 2), (50, 1)]
    assert chunks[2][0].intended_us[[0, -1]].tolist() == [4_000_000, 5_000_000]


@pytest.mark.parametrize("quick", [True, False])
def test_the_head_is_the_longest_run_of_the_small_group(monkeypatch, quick):
    monkeypatch.setattr(simulator_speed, "SIZES", (1_000, 2_000))
    monkeypatch.setattr(simulator_speed, "LARGEST", 3_000)
    shown: list[SpeedRow] = []

    speed = measure_all(quick=quick, report=shown.append)

    assert list(speed.growth) == shown
    assert [row.events for row in shown] == [1_000, *[2_000] * 6] + ([] if quick else [3_000] * 3)
    long = [] if quick else ["engine", "static", "algorithm-2"]
    assert [row.measured for row in shown] == ["engine"] * 5 + ["pool"] * 2 + long
    assert (speed.events_per_s, speed.wall_s) == (shown[1].events_per_s, shown[1].wall_s)
