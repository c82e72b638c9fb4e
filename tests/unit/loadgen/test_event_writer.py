"""Rows in any order become a file in order of time, however little memory there is."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from loadgen.event_writer import NO_KEY, ROW, EventWriter, gathered, merged
from loadgen.trace import EventTrace, read_trace


@given(st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=30), min_size=1, max_size=6), st.integers(1, 12))
def test_runs_are_merged_stably_in_small_pieces(times: list[list[int]], piece_rows: int) -> None:
    runs = []
    for number, each in enumerate(times):
        run = np.zeros(len(each), dtype=ROW)
        run["at_ms"], run["partition"], run["key"] = sorted(each), number, np.arange(len(each))
        runs.append(run)
    pieces = list(merged([iter(np.split(run, range(piece_rows, len(run), piece_rows))) for run in runs]))
    expected = sorted((at_ms, run, place) for run, each in enumerate(times) for place, at_ms in enumerate(sorted(each)))
    assert [(row["at_ms"], row["partition"], row["key"]) for piece in pieces for row in piece] == expected
    assert max(map(len, pieces)) <= piece_rows * len(runs)
    whole = list(gathered(pieces, piece_rows))
    assert np.array_equal(np.concatenate(whole), np.concatenate(pieces))
    assert all(len(piece) >= piece_rows for piece in whole[:-1])


def test_what_is_written_is_a_trace_that_knows_its_topic(tmp_path: Path) -> None:
    writer = EventWriter(tmp_path, run_rows=2)
    for at_ms, key, partition in ((5_700, 9, 1), (5_300, NO_KEY, 0), (7_001, 9, 1)):
        writer.add([(at_ms, key, partition, 10)])
    assert writer.write(tmp_path / "mine.parquet", partitions=6) == pytest.approx(1.701)
    table = parquet.read_table(tmp_path / "mine.parquet")
    assert (table["at_s"].to_pylist(), table["key"].to_pylist()) == ([0.3, 0.7, 2.001], [None, 9, 9])
    trace = read_trace(tmp_path / "mine.parquet", 2)
    assert isinstance(trace, EventTrace)
    assert (trace.partitions, trace.duration_s) == (6, 3), "the topic's own, not the scenario's"
