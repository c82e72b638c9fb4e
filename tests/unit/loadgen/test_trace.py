"""A table of events per second is read unchanged, or its first error is named by file and row."""

import gzip
import re
import tracemalloc
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

import loadgen.trace
from contracts.validation import InvalidSettingsError
from loadgen.trace import Trace, read_trace


def written(folder: Path, content: str | bytes) -> Path:
    path = folder / "mine.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def problem_of(path: Path) -> str:
    with pytest.raises(InvalidSettingsError) as error:
        read_trace(path)
    (problem,) = error.value.problems
    return problem


@pytest.mark.parametrize(
    "text",
    [
        "second,events\r\n0,1\r\n1,2\r\n",
        "second,events\n0,1\n1,2",
        "\ufeffsecond,trips\n0,1\n1,2\n\n\n",
        "Second , events\n 0 , 1 \n 1 , 2 \n",
        '"second","events"\n"0","1"\n"1","2"\n',
        "second,events\n0,1.0\n1.0,2e0\n",
    ],
)
def test_files_of_other_programs_are_read(tmp_path: Path, text: str) -> None:
    trace = read_trace(written(tmp_path, text))
    assert isinstance(trace, Trace)
    assert (trace.counts.tolist(), trace.duration_s, trace.partitions) == ([1, 2], 2, None)


def test_several_columns_are_partitions(tmp_path: Path) -> None:
    trace = read_trace(written(tmp_path, "second,p0,p1,p2\n0,1,2,3\n1,4,5,6\n"))
    assert trace.counts.tolist() == [[1, 2, 3], [4, 5, 6]]
    assert trace.partitions == 3


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("second,events\n0,1\n5,1\n", "line 3: second 5 must be 1"),
        ("second,events\n0,-1\n", "line 2: events = -1: is negative"),
        ("second,events\n0,1\n1,many\n", "line 3: events = 'many': is not a number"),
        ("second,events\n0,1.5\n", "line 2: events = 1.5: "),
        ("second,events\n0,\n", "line 2: events is empty"),
        ("second,events\n0,1\n1,2,3\n", "line 3: Expected 2 columns, got 3"),
        ("second,events\n", "it has no event"),
        ("", "line 1: '' is not the header; must be second,events or second,p0,p1,…"),
        (gzip.compress(b"second,events\n0,1\n", mtime=0), "is compressed with gzip; unpack it"),
        (b"PK\x03\x04second", "is compressed with zip; unpack it"),
        (b"\x28\xb5\x2f\xfdsecond", "is compressed with zstd; unpack it"),
        (b"second,events\n0,\xe9\n", "line 2: invalid UTF8 data"),
    ],
    ids=str,
)
def test_the_first_error_is_named_by_file_and_row(tmp_path: Path, text: str | bytes, problem: str) -> None:
    assert re.match(rf"(.*/)?mine.csv: {re.escape(problem)}", problem_of(written(tmp_path, text)))


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_long_table_is_read_in_parts(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = 40_000
    table = pa.table({"second": np.arange(rows), "events": np.arange(rows) % 7})
    path = tmp_path / f"long.{kind}"
    csv.write_csv(table, path) if kind == "csv" else parquet.write_table(table, path)
    tracemalloc.start()
    try:
        trace = read_trace(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert trace.counts.tolist() == (np.arange(rows) % 7).tolist()
    assert peak < 60 * rows, "a list for each row takes 115 bytes"
    assert len(read_trace(path, first_s=10).counts) == 10
    monkeypatch.setattr(loadgen.trace, "MAX_CELLS", 20)
    assert "seconds × columns must be at most 20; use a part of it" in problem_of(path)
