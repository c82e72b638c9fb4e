"""A trace of single events, `at_s[,partition][,key][,size]`: CSV or Parquet, read in parts, however long it is."""

import math
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final, NoReturn

import numpy as np

from contracts.settings import DAY_S
from contracts.validation import InvalidSettingsError
from loadgen.schedule import NO_KEY, SECOND_US, Schedule
from loadgen.shapes import IntArray

AT, PARTITION, KEY, SIZE = "at_s", "partition", "key", "size"
FORM: Final = "at_s,partition[,key][,size] or at_s,key[,size]"
PARTITIONS: Final = b"tailpack.partitions"
"""Where a Parquet file says, in its own metadata, how many partitions the recorded topic has."""
BLOCK_BYTES: Final = 1 << 22
BATCH_ROWS: Final = 1 << 18
LONGEST_S: Final = int(31 * DAY_S)
MOST_PARTITIONS: Final = 10_000
MIXING: Final = 0x9E3779B97F4A7C15
"""Spreads numbers that follow one another: 2^64 over the golden ratio (Knuth)."""
MOST_CELLS: Final = 20_000_000
"""Seconds × partitions, of which there is a table."""


@dataclass(frozen=True, slots=True, eq=False)
class EventTrace:
    """Events that have been looked through once; each pass over `chunks` reads the file again."""

    path: Path
    partitions: int
    """As the file says of its topic, else as was asked for, else as many as the events name."""
    duration_s: int
    counts: IntArray
    """Events by second and partition."""

    @property
    def name(self) -> str:
        """Name of the file."""
        return self.path.name

    def chunks(self, *, keys: bool = False) -> Iterator[Schedule]:
        """Yield the events in parts; those of one time stay together. keys: theirs, too, where there are any."""
        held = Schedule(np.zeros(0, np.int64), np.zeros(0, np.int32))
        for part in _schedules(self.path, self.partitions, self.duration_s, keys=keys):
            both = joined([held, part])
            ready = int(both.offset_us.searchsorted(both.offset_us[-1]))
            held = both[ready:]
            if ready:
                yield both[:ready]
        yield held


def joined(parts: list[Schedule]) -> Schedule:
    """Return successive parts as one."""
    keys = [part.key for part in parts if len(part) and part.key is not None]
    return Schedule(
        np.concatenate([part.offset_us for part in parts]),
        np.concatenate([part.partition for part in parts]),
        np.concatenate(keys) if keys else None,
    )


def is_event_trace(path: Path) -> bool:
    """Tell by its columns whether a file is one. Raises OSError."""
    names = parquet_file(path).schema_arrow.names if is_parquet(path) else _header(path)
    return AT in (name.lower() for name in names)


def _header(path: Path) -> list[str]:
    with path.open("rb") as file:
        first = file.readline(1000).decode("utf-8-sig")
    return [name.strip(' "\r\n') for name in first.split(",")]


def is_parquet(path: Path) -> bool:
    """Tell by its first bytes. Raises OSError."""
    with path.open("rb") as file:
        return file.read(4) == b"PAR1"


def parquet_file(path: Path) -> Any:
    """Open a Parquet file. Raises InvalidSettingsError."""
    try:
        from pyarrow import ArrowException, parquet  # noqa: PLC0415  a tenth of a second, and an extra
    except ImportError as missing:
        raise InvalidSettingsError([f"reading {path.name} takes pyarrow: pip install '.[load]'"]) from missing
    try:
        return parquet.ParquetFile(path, buffer_size=BLOCK_BYTES, pre_buffer=False)
    except (OSError, ArrowException) as wrong:
        raise InvalidSettingsError([f"{path.name}: cannot be read as Parquet ({_first_line(wrong)})"]) from wrong


def read_event_trace(path: Path, partitions: int | None = None, *, first_s: int | None = None) -> EventTrace:
    """Look through the events: times never fall, partitions are there. Memory does not grow with the events.

    Where no partition is said, a hash of its key chooses an event's. partitions: of the topic, where the file does not
    say. first_s: only so many seconds.
    Raises InvalidSettingsError with the first mistake, by its file and row.
    """
    said = _declared(path)
    limit = said or partitions
    counts = np.zeros((1, limit or 1), dtype=np.int64)
    end_s = 0
    for part in _schedules(path, limit, first_s):
        second = part.offset_us // SECOND_US
        end_s, width = int(second[-1]) + 1, max(counts.shape[1], int(part.partition.max()) + 1)
        if end_s * width > MOST_CELLS:
            long = f"{end_s:,} s of {width} partitions: seconds × partitions must be at most {MOST_CELLS:,}"
            raise InvalidSettingsError([f"{path.name}: {long}; take a part of it"])
        counts = _grown(counts, end_s, width)
        begin = int(second[0])
        cell = (second - begin) * width + part.partition
        counts[begin:end_s] += np.bincount(cell, minlength=(end_s - begin) * width).reshape(-1, width)
    if not end_s:
        raise InvalidSettingsError([f"{path.name}: it has no event"])
    return EventTrace(path, counts.shape[1], end_s, counts[:end_s])


def _grown(counts: IntArray, seconds: int, partitions: int) -> IntArray:
    """Return room for so many seconds and partitions, and as much again where it had to grow."""
    if seconds <= counts.shape[0] and partitions == counts.shape[1]:
        return counts
    larger = np.zeros((max(counts.shape[0], min(2 * seconds, MOST_CELLS // partitions)), partitions), dtype=np.int64)
    larger[: counts.shape[0], : counts.shape[1]] = counts
    return larger


def _schedules(path: Path, partitions: int | None, first_s: int | None, *, keys: bool = False) -> Iterator[Schedule]:
    """Yield the rows as events, in parts that are not empty. Raises InvalidSettingsError."""
    checked = _Checked(path.name, "row" if is_parquet(path) else "line", partitions or MOST_PARTITIONS)
    for first, columns in _parts(path, keys=keys):
        found = checked.read(first, columns)
        kept = len(found) if first_s is None else int(found.offset_us.searchsorted(first_s * SECOND_US))
        if kept:
            yield found[:kept]
        if kept < len(found):
            return


@dataclass(slots=True)
class _Checked:
    """From rows to events, with what must hold from one part to the next."""

    name: str
    row: str
    """What one is called: line or row."""
    partitions: int
    last_us: int = 0

    def read(self, first: int, columns: Mapping[str, Any]) -> Schedule:
        """Return rows as events. first: number of the first row. Raises InvalidSettingsError."""
        at_s = self._numbers(first, AT, columns[AT])
        key = _hashed(columns[KEY]) if KEY in columns else None
        told = PARTITION in columns
        partition = self._numbers(first, PARTITION, columns[PARTITION]) if told else self._by_key(first, key)
        offset_us = np.round(np.clip(at_s, 0, LONGEST_S) * SECOND_US).astype(np.int64)
        topic = f"the topic has {self.partitions} partitions, from 0 on; --set partitions=…"
        for name, values, wrong, why in (
            ("at_s", at_s, at_s < 0, "is negative"),
            ("at_s", at_s, at_s >= LONGEST_S, f"is {LONGEST_S:,} or more; seconds count from the start of the run"),
            ("partition", partition, partition < 0, "is negative"),
            ("partition", partition, partition != np.floor(partition), "is a fraction"),
            ("partition", partition, partition >= self.partitions, topic),
            (
                "at_s",
                at_s,
                np.diff(offset_us, prepend=self.last_us) < 0,
                "is before the event above; sort them by at_s",
            ),
        ):
            if wrong.any():
                at = int(wrong.argmax())
                self._refuse(first + at, f"{name} = {values[at]:.12g}: {why}")
        self.last_us = int(offset_us[-1])
        return Schedule(offset_us, partition.astype(np.int32), key)

    def _by_key(self, first: int, key: IntArray | None) -> "np.ndarray[Any, np.dtype[np.float64]]":
        """Return a partition for each key, the same for the same; events without one are spread over all."""
        if key is None or self.partitions == MOST_PARTITIONS:
            self._refuse(first, f"there is no column {PARTITION}: say how many the topic has, --set partitions=…")
        number = np.where(key == NO_KEY, np.arange(first, first + len(key)), key).astype(np.uint64) * np.uint64(MIXING)
        return ((number ^ (number >> np.uint64(32))) % np.uint64(self.partitions)).astype(np.float64)

    def _numbers(self, first: int, name: str, column: Any) -> "np.ndarray[Any, np.dtype[np.float64]]":
        from pyarrow import ArrowException, compute, float64, types  # noqa: PLC0415

        try:
            found = (compute.utf8_trim_whitespace(column) if types.is_string(column.type) else column).cast(float64())
        except ArrowException:
            found = None
        values: np.ndarray[Any, np.dtype[np.float64]] = (
            np.array([_number(one) for one in column.to_pylist()])
            if found is None
            else found.to_numpy(zero_copy_only=False)  # what is missing becomes NaN
        )
        wrong = ~np.isfinite(values)
        if wrong.any():
            at = int(wrong.argmax())
            cell = column[at].as_py()
            self._refuse(
                first + at, f"{name} is empty" if cell in (None, "") else f"{name} = {cell!r}: is not a number"
            )
        return values

    def _refuse(self, row: int, why: str) -> NoReturn:
        raise InvalidSettingsError([f"{self.name}: {self.row} {row}: {why}"])


def _number(cell: Any) -> float:
    try:
        return float(cell)
    except (TypeError, ValueError):
        return math.nan


def _hashed(column: Any) -> IntArray:
    """Return a number for each key: whole numbers as they are, text hashed; what is missing is NO_KEY."""
    from pyarrow import ArrowException, compute, int64, types  # noqa: PLC0415

    with suppress(ArrowException):  # beyond 63 bits they are hashed
        if types.is_integer(column.type):
            return np.asarray(compute.fill_null(column.cast(int64()), NO_KEY).to_numpy(zero_copy_only=False))
    coded = compute.dictionary_encode(column, null_encoding="encode")
    values = [NO_KEY if one in _NO_KEYS else key_hash(_as_bytes(one)) for one in coded.dictionary.to_pylist()]
    hashes: IntArray = np.array(values, dtype=np.int64)
    return hashes.take(np.asarray(coded.indices))


_NO_KEYS: Final = (None, "", b"")


def _as_bytes(key: Any) -> bytes:
    return key if isinstance(key, bytes) else str(key).encode()


def key_hash(key: bytes, secret: bytes = b"") -> int:
    """Return 63 bits of a key: equal keys, equal numbers. secret: without it nobody can try keys out."""
    return int.from_bytes(blake2b(key, digest_size=8, key=secret).digest(), "big") >> 1


def _parts(path: Path, *, keys: bool) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the number of the first row, and the columns, of successive parts. Raises InvalidSettingsError."""
    from pyarrow import ArrowException  # noqa: PLC0415

    try:
        yield from (_parquet_parts if is_parquet(path) else _csv_parts)(path, keys)
    except ArrowException as wrong:
        said = re.sub(r".*?Row #(\d+): ", r"line \1: ", _first_line(wrong)).replace(
            "CSV conversion error to string: ", ""
        )
        raise InvalidSettingsError([f"{path.name}: {said}"]) from wrong


def _parquet_parts(path: Path, keys: bool) -> Iterator[tuple[int, dict[str, Any]]]:
    file = parquet_file(path)
    wanted = _wanted(path.name, file.schema_arrow.names, keys)
    first = 1
    for group in range(file.num_row_groups):  # asked for all at once, what has been read would stay in memory
        batches = file.iter_batches(BATCH_ROWS, row_groups=[group], columns=list(wanted.values()), use_threads=False)
        for batch in batches:
            if batch.num_rows:
                yield first, {name: batch.column(said) for name, said in wanted.items()}
            first += batch.num_rows


def _csv_parts(path: Path, keys: bool) -> Iterator[tuple[int, dict[str, Any]]]:
    import pyarrow  # noqa: PLC0415
    from pyarrow import csv  # noqa: PLC0415

    names = _header(path)
    wanted = _wanted(f"{path.name}: line 1", names, keys)
    parts = csv.open_csv(
        path,
        csv.ReadOptions(block_size=BLOCK_BYTES, use_threads=False, column_names=names, skip_rows=1),
        csv.ParseOptions(ignore_empty_lines=False),
        csv.ConvertOptions(
            column_types=dict.fromkeys(names, pyarrow.string()),
            strings_can_be_null=False,
            include_columns=list(wanted.values()),
        ),
    )
    line, blank = 2, 0
    for part in parts:
        columns = {name: part.column(said) for name, said in wanted.items()}
        filled = len(part)
        while filled and not any(column[filled - 1].as_py() for column in columns.values()):
            filled -= 1
        if blank and filled:
            raise InvalidSettingsError([f"{path.name}: line {blank}: is empty"])
        if filled:
            yield line, {name: column[:filled] for name, column in columns.items()}
        blank = blank or (line + filled if filled < len(part) else 0)
        line += len(part)


def _wanted(where: str, names: list[str], keys: bool) -> dict[str, str]:
    """Return what is read → its name in the file. Raises InvalidSettingsError for columns that are none of a trace."""
    known = {name.lower(): name for name in names}
    placed = PARTITION in known
    right = AT in known and (placed or KEY in known) and set(known) <= {AT, PARTITION, KEY, SIZE}
    if not right or len(known) < len(names):
        raise InvalidSettingsError([f"{where}: {','.join(names)[:80]!r} are not the columns; must be {FORM}"])
    read = {AT: True, PARTITION: placed, KEY: KEY in known and (keys or not placed)}
    return {name: known[name] for name, wanted in read.items() if wanted}


def _declared(path: Path) -> int | None:
    """Return how many partitions a recorded topic has."""
    if not is_parquet(path):
        return None
    said = (parquet_file(path).schema_arrow.metadata or {}).get(PARTITIONS)
    return None if said is None else int(said)


def _first_line(wrong: Exception) -> str:
    return str(wrong).splitlines()[0]
