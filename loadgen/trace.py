"""A trace: somebody's own events per second, as a table. Every mistake is named by its line."""

import csv
from array import array
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import count
from math import isfinite
from pathlib import Path
from typing import Final

import numpy as np

from contracts.validation import InvalidSettingsError
from loadgen.event_trace import (
    LONGEST_S,
    MOST_CELLS,
    EventTrace,
    is_event_trace,
    is_parquet,
    parquet_file,
    read_event_trace,
)
from loadgen.shapes import IntArray

MOST_EVENTS: Final = 10_000_000
"""In one second of one column; more is taken for a mistake."""
NAMED_PROBLEMS: Final = 5
LONGEST_LINE: Final = 1 << 20
"""Characters: enough for a column for each of the most partitions."""
PART_ROWS: Final = 8192
"""Of a Parquet file, in memory at a time."""
FORM: Final = "second,events or second,p0,p1,… or at_s,partition or at_s,key"


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """Events per second from second 0 on."""

    name: str
    counts: IntArray
    """Shape (seconds,), or (seconds, partitions) where the trace has a column for each partition."""

    @property
    def duration_s(self) -> int:
        """Seconds that it lasts."""
        return len(self.counts)

    @property
    def partitions(self) -> int | None:
        """Number of its columns; None where it states the total alone."""
        return None if self.counts.ndim == 1 else self.counts.shape[1]


def parse_trace(name: str, lines: Iterable[str], first_s: int | None = None) -> Trace:
    """Read `second,events` (the second name is free), or `second,p0,p1,…` with a column for each partition.

    Seconds count from 0, one line each; events are whole and not negative. Either kind of line end and empty lines at
    the end do no harm. Line by line: eight bytes a cell stay. first_s: only so many seconds. Raises
    InvalidSettingsError with the first few mistakes.
    """
    table = _rows(lines)
    _, header = next(table, (1, []))
    if problem := _wrong_header(header):
        raise InvalidSettingsError([f"line 1: {problem}"])
    cells = array("q")
    problems: list[str] = []
    second, blank = -1, 0
    for line, row in table:
        if not any(cell.strip() for cell in row):
            blank = blank or line
            continue
        if blank:
            problems.append(f"line {blank}: is empty")
            blank = 0
        values, wrong = _read(row, header, second)
        problems += [f"line {line}: {one}" for one in wrong]
        cells.extend(values[1:])
        second = max(second, values[0])
        if len(cells) > MOST_CELLS:
            problems.append(f"line {line}: seconds × columns must be at most {MOST_CELLS:,}; take a part of it")
        if len(problems) >= NAMED_PROBLEMS or len(cells) > MOST_CELLS or second + 1 == first_s:
            break
    if not cells and not problems:
        problems.append("line 2: is missing; there is no second in it")
    if problems:
        raise InvalidSettingsError(problems[:NAMED_PROBLEMS])
    counts = np.frombuffer(cells, np.int64)
    return Trace(name, counts if len(header) == 2 else counts.reshape(-1, len(header) - 1))


def _rows(lines: Iterable[str]) -> Iterator[tuple[int, list[str]]]:
    """Yield line number and cells. Raises InvalidSettingsError for what is no comma-separated text."""
    table = csv.reader(lines)
    try:
        for row in table:
            yield table.line_num, row
    except csv.Error as wrong:
        raise InvalidSettingsError([f"line {table.line_num}: {wrong}"]) from wrong


def _wrong_header(header: list[str]) -> str | None:
    names = [name.strip() for name in header]
    if not any(names):
        return f"is empty; must be {FORM}"
    if names[0].lower() != "second" or len(names) < 2:
        return f"{','.join(names)!r} is not the header; must be {FORM}"
    wanted = [f"p{number}" for number in range(len(names) - 1)]
    if len(names) > 2 and names[1:] != wanted:
        number, (found, right) = next(
            (number, pair) for number, pair in enumerate(zip(names[1:], wanted, strict=True), 2) if pair[0] != pair[1]
        )
        return f"column {number} is {found!r} where {right!r} belongs; with several columns they are partitions"
    return None


def _read(row: list[str], header: list[str], before: int) -> tuple[list[int], list[str]]:
    """Return second and events of a line, and what is wrong with it. before: the second of the line before."""
    expected = before + 1
    if len(row) != len(header):
        return [expected], [f"has {len(row)} of {len(header)} columns"]
    values, wrong = [], []
    for name, cell in zip(header, row, strict=True):
        try:
            values.append(_whole(name.strip(), cell.strip()))
        except ValueError as problem:
            wrong.append(str(problem))
            values.append(0 if values else expected)  # one mistake is named once
    if problem_of_order := _out_of_order(values[0], before):
        wrong.insert(0, problem_of_order)
    return values, wrong


def _out_of_order(second: int, before: int) -> str | None:
    if second == before + 1:
        return None
    if before < 0:
        return f"begins at second {second}; must begin at 0"
    if second <= before:
        return f"second {second} is there twice" if second == before else f"second {second} after {before}: wrong order"
    missing = f"{before + 1}" if second == before + 2 else f"{before + 1} to {second - 1}"
    return f"gap: second {second} comes after {before}; {missing} missing"


def _whole(what: str, text: str) -> int:
    """Return a whole number that is not negative; "12.0" is one. Raises ValueError."""
    try:
        value = float(text)
    except ValueError:
        raise ValueError(f"{what} = {text!r}: is not a number" if text else f"{what} is empty") from None
    if "_" in text or not isfinite(value):
        raise ValueError(f"{what} = {text}: is not a whole number")
    if value < 0:
        raise ValueError(f"{what} = {text}: is negative")
    if not value.is_integer():
        raise ValueError(f"{what} = {text}: is a fraction")
    if what.lower() != "second":
        if value > MOST_EVENTS:
            raise ValueError(f"{what} = {text}: more than {MOST_EVENTS:,} in a second")
    elif value >= LONGEST_S:
        raise ValueError(f"{what} = {text}: is {LONGEST_S:,} or more; seconds count from the start of the run")
    return int(value)


def read_trace(path: Path, partitions: int | None = None, *, first_s: int | None = None) -> Trace | EventTrace:
    """Read a file of either kind, CSV or Parquet.

    partitions: of the topic, where events name theirs. first_s: only so many seconds.
    Raises InvalidSettingsError with one message that names the first mistakes by file and row.
    """
    try:
        if is_event_trace(path):
            return read_event_trace(path, partitions, first_s=first_s)
        trace = parse_trace(path.name, _lines(path), first_s)
    except OSError as missing:
        said = missing.strerror or str(missing).splitlines()[0]  # Arrow's have no number
        raise InvalidSettingsError([f"{path}: cannot be read ({said})"]) from missing
    except UnicodeDecodeError as wrong:
        raise InvalidSettingsError([f"{path}: {_not_text(path)}"]) from wrong
    except InvalidSettingsError as wrong:
        said = str(wrong)
        raise InvalidSettingsError([said if said.startswith(path.name) else f"{path.name}: {said}"]) from wrong
    if not trace.counts.any():
        raise InvalidSettingsError([f"{path.name}: it has no event"])
    return trace


def _not_text(path: Path) -> str:
    """Return what a file is that is not UTF-8 text, and what to do."""
    with path.open("rb") as file:
        begin = file.read(2)
    if begin == b"\x1f\x8b":
        return "is compressed with gzip; unpack it"
    what = "UTF-16" if begin in (BOM_UTF16_BE, BOM_UTF16_LE) else "not UTF-8"
    return f"is {what} text; save it as UTF-8, or as Parquet"


def _lines(path: Path) -> Iterator[str]:
    if is_parquet(path):
        file = parquet_file(path)
        yield ",".join(file.schema_arrow.names)
        for group in range(file.num_row_groups):  # asked for all at once, what has been read would stay in memory
            for part in file.iter_batches(PART_ROWS, row_groups=[group], use_threads=False):
                yield from (",".join(map(str, row)) for row in zip(*(one.to_pylist() for one in part), strict=True))
        return
    with path.open(encoding="utf-8-sig") as lines:  # spreadsheets begin with a byte order mark
        for number in count(1):
            line = lines.readline(LONGEST_LINE)
            if len(line) == LONGEST_LINE:
                raise InvalidSettingsError([f"line {number}: does not end after {LONGEST_LINE:,} characters"])
            if not line:
                return
            yield line
