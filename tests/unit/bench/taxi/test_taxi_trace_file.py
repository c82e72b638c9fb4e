"""A trace is written whole or not at all, and is read as it was meant."""

from pathlib import Path

import numpy as np
import pytest

from bench.simulation.traces import read_trace
from bench.taxi import trace_file
from bench.taxi.trace_file import check_place, write_trace
from report.spark import ReportError


@pytest.mark.parametrize("partitions", [1, 3])
def test_what_is_written_is_what_the_simulator_reads(tmp_path: Path, monkeypatch, partitions: int) -> None:
    monkeypatch.setattr(trace_file, "BATCH", 4)
    counts = np.arange(10 * partitions).reshape(10, partitions)

    write_trace(tmp_path / "trace.csv", counts)
    read = read_trace(tmp_path / "trace.csv")

    assert read.partitions == (None if partitions == 1 else partitions)
    assert np.array_equal(read.counts.reshape(10, partitions), counts)


def test_a_trace_that_fails_half_way_leaves_the_old_one_and_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "trace.csv"
    file.write_text("old")

    class Full:
        shape = (2, 1)

        def __len__(self) -> int:
            return 2

        def __getitem__(self, _: slice) -> None:
            raise OSError(28, "No space left on device")

    with pytest.raises(ReportError, match=r"cannot be written \(No space left on device\)"):
        write_trace(file, Full())  # type: ignore[arg-type]

    assert [one.name for one in tmp_path.iterdir()] == ["trace.csv"]
    assert file.read_text() == "old"


def test_a_place_that_takes_no_file_is_refused_before_the_work(tmp_path: Path) -> None:
    with pytest.raises(ReportError, match="is a folder"):
        check_place(tmp_path)
    with pytest.raises(ReportError, match=r"away is not there"):
        check_place(tmp_path / "away" / "trace.csv")
    check_place(tmp_path / "trace.csv")
