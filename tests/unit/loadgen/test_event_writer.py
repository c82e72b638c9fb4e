"""Rows in any order become a file sorted by time, with little memory."""

from pathlib import Path

import numpy as np
import pytest
from pyarrow import parquet

from loadgen import event_writer
from loadgen.event_writer import NO_KEY, EventWriter
from loadgen.trace import EventTrace, read_trace


def test_rows_in_any_order_become_sorted_groups_and_equal_times_keep_their_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_writer, "FETCH_ROWS", 7)
    monkeypatch.setattr(event_writer, "GROUP_ROWS", 20)
    at_ms = np.random.default_rng(3).integers(0, 30, 100).tolist()
    writer = EventWriter(tmp_path)
    for begin in range(0, 100, 9):
        writer.add([(at_ms[n], n, n % 5, 10) for n in range(begin, min(begin + 9, 100))])
    writer.write(tmp_path / "mine.parquet", partitions=5)
    assert parquet.read_table(tmp_path / "mine.parquet")["key"].to_pylist() == sorted(range(100), key=at_ms.__getitem__)
    assert parquet.ParquetFile(tmp_path / "mine.parquet").num_row_groups == 5


def test_the_file_is_a_trace_with_the_partitions_of_its_topic(tmp_path: Path) -> None:
    writer = EventWriter(tmp_path)
    for at_ms, key, partition in ((5_700, 9, 1), (5_300, NO_KEY, 0), (7_001, 9, 1)):
        writer.add([(at_ms, key, partition, 10)])
    assert writer.write(tmp_path / "mine.parquet", partitions=6) == pytest.approx(1.701)
    table = parquet.read_table(tmp_path / "mine.parquet")
    assert (table["at_s"].to_pylist(), table["key"].to_pylist()) == ([0.3, 0.7, 2.001], [None, 9, 9])
    trace = read_trace(tmp_path / "mine.parquet", 2)
    assert isinstance(trace, EventTrace)
    assert (trace.partitions, trace.duration_s) == (6, 3), "the topic's own, not the scenario's"
