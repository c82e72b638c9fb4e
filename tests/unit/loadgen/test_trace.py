"""A trace is read as it stands, or every mistake in it is named by its line."""

import gzip
import re
import tracemalloc
from itertools import chain, count
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from pyarrow import csv, parquet

import loadgen.trace
from contracts.validation import InvalidSettingsError
from loadgen.trace import Trace, parse_trace, read_trace


def trace(text: str) -> Trace:
    return parse_trace("mine.csv", text.splitlines(keepends=True))


def problems_of(text: str) -> list[str]:
    with pytest.raises(InvalidSettingsError) as wrong:
        trace(text)
    return wrong.value.problems


def test_a_column_of_events_is_the_total_of_each_second() -> None:
    read = trace("second,events\n0,10\n1,0\n2,30\n")
    assert read.counts.tolist() == [10, 0, 30]
    assert (read.duration_s, read.partitions) == (3, None)
    assert trace("second,trips per second\n0,5\n").counts.tolist() == [5]


def test_several_columns_are_partitions() -> None:
    read = trace("second,p0,p1,p2\n0,1,2,3\n1,4,5,6\n")
    assert read.counts.tolist() == [[1, 2, 3], [4, 5, 6]]
    assert read.partitions == 3


@pytest.mark.parametrize(
    "text",
    [
        "second,events\r\n0,1\r\n1,2\r\n",
        "second,events\n0,1\n1,2",
        "second,events\n0,1\n1,2\n\n\n",
        "Second , events\n 0 , 1 \n 1 , 2 \n",
        '"second","events"\n"0","1"\n"1","2"\n',
        "second,events\n0,1.0\n1.0,2e0\n",
    ],
)
def test_what_other_programs_write_is_read(text: str) -> None:
    assert trace(text).counts.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ("0,1\n5,1\n", "line 3: gap: second 5 comes after 0; 1 to 4 missing"),
        ("0,1\n0,1\n", "line 3: second 0 is there twice"),
        ("0,1\n1,1\n0,1\n2,1\n", "line 4: second 0 after 1: wrong order"),
        ("3,1\n4,1\n", "line 2: begins at second 3; must begin at 0"),
        ("0,-1\n", "line 2: events = -1: is negative"),
        ("0,many\n", "line 2: events = 'many': is not a number"),
        ("0,nan\n", "line 2: events = nan: is not a whole number"),
        ("0,1.5\n", "line 2: events = 1.5: is a fraction"),
        ("0,\n", "line 2: events is empty"),
        ("0,99999999999\n", "line 2: events = 99999999999: more than 10,000,000 in a second"),
        ("0,1e300\n", "line 2: events = 1e300: more than 10,000,000 in a second"),
        ("1e9,1\n", "line 2: second = 1e9: is 2,678,400 or more; seconds count from the start of the run"),
        ("now,1\n", "line 2: second = 'now': is not a number"),
        ("0,1\n1,2,3\n", "line 3: has 3 of 2 columns"),
        ("0,1\n\n1,1\n", "line 3: is empty"),
        ("", "line 2: is missing; there is no second in it"),
    ],
)
def test_one_mistake_is_named_once_with_its_line(rows: str, problem: str) -> None:
    assert problems_of(f"second,events\n{rows}") == [problem]


@pytest.mark.parametrize(
    ("header", "problem"),
    [
        ("", "line 1: is empty; must be second,events or second,p0,p1,…"),
        ("0,10", "line 1: '0,10' is not the header; must be second,events or second,p0,p1,…"),
        ("second,p0,p2", "line 1: column 3 is 'p2' where 'p1' belongs"),
    ],
)
def test_a_wrong_header_is_the_one_problem(header: str, problem: str) -> None:
    (found,) = problems_of(f"{header}\n0,1\n")
    assert found.startswith(problem)


def test_two_mistakes_in_a_line_are_both_named_and_so_is_the_column() -> None:
    assert problems_of("second,p0,p1\n0,1,1\n2,5,-1\n") == [
        "line 3: gap: second 2 comes after 0; 1 missing",
        "line 3: p1 = -1: is negative",
    ]


def test_the_first_five_mistakes_are_named_at_once() -> None:
    problems = problems_of("second,events\n" + "".join(f"{second},x\n" for second in range(100)))
    assert [problem.partition(":")[0] for problem in problems] == [f"line {number}" for number in range(2, 7)]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_long_one_is_read_in_parts(tmp_path: Path, kind: str) -> None:
    rows = 40_000
    table = pa.table({"second": np.arange(rows), "events": np.arange(rows) % 7})
    path = tmp_path / f"long.{kind}"
    csv.write_csv(table, path) if kind == "csv" else parquet.write_table(table, path)
    tracemalloc.start()
    try:
        found = read_trace(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found.counts.tolist() == (np.arange(rows) % 7).tolist()
    assert peak < 60 * rows, "a list for each row takes 115 bytes"
    assert len(read_trace(path, first_s=10).counts) == 10


def test_one_that_never_ends_is_refused_when_it_is_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loadgen.trace, "MOST_CELLS", 20)
    endless = chain(["second,p0,p1\n"], (f"{second},1,1\n" for second in count()))
    with pytest.raises(InvalidSettingsError, match="line 12: seconds × columns must be at most 20; take a part of it"):
        parse_trace("mine.csv", endless)


def test_a_second_may_bring_ten_million_events() -> None:
    assert trace("second,events\n0,10000000\n").counts.tolist() == [10_000_000]


def test_a_line_that_never_ends_is_refused_as_it_is_read() -> None:
    with pytest.raises(InvalidSettingsError, match="zero: line 1: does not end after 1,048,576 characters"):
        read_trace(Path("/dev/zero"))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (gzip.compress(b"second,events\n0,1\n", mtime=0), "is compressed with gzip; unpack it"),
        ("second,events\n0,1\n".encode("utf-16"), "is UTF-16 text; save it as UTF-8, or as Parquet"),
        (b"second,events\n0,\xe9\n", "is not UTF-8 text; save it as UTF-8, or as Parquet"),
    ],
)
def test_what_is_no_text_is_named(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "mine.csv"
    path.write_bytes(content)
    with pytest.raises(InvalidSettingsError, match=re.escape(f"{path}: {said}")):
        read_trace(path)


def test_a_parquet_file_that_is_corrupt_inside_says_what_its_reader_says(tmp_path: Path) -> None:
    path = tmp_path / "corrupt.parquet"
    parquet.write_table(pa.table({"second": np.arange(5000), "events": np.arange(5000) % 7}), path)
    content = bytearray(path.read_bytes())
    content[4:200] = b"\xff" * 196
    path.write_bytes(content)
    with pytest.raises(InvalidSettingsError) as wrong:
        read_trace(path)
    assert str(wrong.value).startswith(f"{path}: cannot be read (")
    assert "None" not in str(wrong.value)


@given(st.integers(1, 20), st.integers(1, 4), st.data())
def test_what_is_written_is_read_back(seconds, partitions, data) -> None:
    counts = data.draw(arrays(np.int64, (seconds, partitions), elements=st.integers(0, 10_000)))
    names = ",".join(f"p{number}" for number in range(partitions))
    rows = "".join(f"{second},{','.join(map(str, row))}\n" for second, row in enumerate(counts.tolist()))
    expected = counts[:, 0] if partitions == 1 else counts
    assert trace(f"second,{names}\n{rows}").counts.tolist() == expected.tolist()


@given(st.text(max_size=200))
def test_whatever_the_file_holds_it_is_read_or_refused(text: str) -> None:
    try:
        seconds = trace(text).duration_s
    except InvalidSettingsError as wrong:
        seconds = len(wrong.problems)
    assert seconds > 0
