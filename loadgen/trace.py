"""Traces replace a workload by recorded traffic: a table of events per second, or single events."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from contracts.settings import DAY_S
from contracts.validation import InvalidSettingsError
from loadgen.schedule import NO_KEY, SECOND_US, Schedule
from loadgen.shapes import IntArray
from loadgen.trace_file import Part, TraceFile

SECOND, AT, PARTITION, KEY, SIZE = "second", "at_s", "partition", "key", "size"
FORM: Final = "second,events or second,p0,p1,… or at_s,partition[,key][,size] or at_s,key[,size]"
PARTITIONS: Final = b"tailpack.partitions"
SERVICE_RATE: Final = b"tailpack.service_rate"
"""Metadata keys of a recorded Parquet file: partitions of the topic; events/s of a busy member of the group."""
MAX_DURATION_S: Final = int(31 * DAY_S)
MAX_PARTITIONS: Final = 10_000
MAX_CELLS: Final = 20_000_000
"""Largest table of a trace in memory, seconds × partitions."""
MAX_EVENTS: Final = 10_000_000
"""Most events in one second of one column. A larger number is treated as an error."""
HASH_MULTIPLIER: Final = 0x9E3779B97F4A7C15
"""Multiplier that spreads consecutive numbers: 2^64 divided by the golden ratio (Knuth)."""


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """A trace of events per second, from second 0."""

    name: str
    counts: IntArray
    """Shape (seconds,), or (seconds, partitions) if the trace has a column for each partition."""

    @property
    def duration_s(self) -> int:
        """Duration, seconds."""
        return len(self.counts)

    @property
    def partitions(self) -> int | None:
        """Number of partition columns of the trace; None if it only has the total."""
        return None if self.counts.ndim == 1 else self.counts.shape[1]

    def save(self, path: Path) -> None:
        """Write a Parquet file that `read_trace` reads."""
        import pyarrow  # noqa: PLC0415  a tenth of a second
        from pyarrow import parquet  # noqa: PLC0415

        names = ["events"] if self.partitions is None else [f"p{number}" for number in range(self.partitions)]
        columns = [np.arange(self.duration_s), *map(np.ascontiguousarray, np.atleast_2d(self.counts.T))]
        parquet.write_table(pyarrow.table(columns, names=["second", *names]), path)


@dataclass(frozen=True, slots=True, eq=False)
class EventTrace:
    """A checked trace of single events. Each pass over `chunks` reads the file again."""

    path: Path
    partitions: int
    """Number of partitions: from the metadata of the file, else from the caller. Larger if the events use more."""
    duration_s: int
    counts: IntArray
    """Events of each second and partition, shape (seconds, partitions)."""

    @property
    def name(self) -> str:
        """File name."""
        return self.path.name

    def chunks(self, *, keys: bool = False) -> Iterator[Schedule]:
        """Yield the events in parts. Events of the same time are in one part. keys: also read their keys, if any."""
        rest = Schedule(np.zeros(0, np.int64), np.zeros(0, np.int32))
        for part in _schedules(TraceFile.open(self.path), self.partitions, self.duration_s, keys=keys):
            both = join_schedules([rest, part])
            ready = int(both.offset_us.searchsorted(both.offset_us[-1]))
            rest = both[ready:]
            if ready:
                yield both[:ready]
        yield rest


def join_schedules(parts: list[Schedule]) -> Schedule:
    """Return successive parts as one schedule."""
    keys = [part.key for part in parts if len(part) and part.key is not None]
    return Schedule(
        np.concatenate([part.offset_us for part in parts]),
        np.concatenate([part.partition for part in parts]),
        np.concatenate(keys) if keys else None,
    )


def read_trace(path: Path, partitions: int | None = None, *, first_s: int | None = None) -> Trace | EventTrace:
    """Read and check a trace in CSV or Parquet. Memory does not grow with the number of events.

    Events per second: `second,NAME` or `second,p0,p1,…`. Seconds count from 0, one row each.
    Single events: `at_s[,partition][,key][,size]`. Times must not fall. Without a partition, the key's hash chooses it.
    partitions: used if the file's metadata has no number; events may use more. first_s: read only the first seconds.
    Raises InvalidSettingsError, which names the file and the first wrong row.
    """
    file = TraceFile.open(path)
    if AT in file.names:
        return _event_trace(file, partitions, first_s)
    _check_table(file)
    tables: list[IntArray] = []
    rows = 0
    for first, columns in file.parts(file.names):
        tables.append(_table(file, first, rows, columns))
        rows += len(tables[-1])
        if rows * (len(file.names) - 1) > MAX_CELLS:
            file.refuse(first, f"seconds × columns must be at most {MAX_CELLS:,}; use a part of it")
        if first_s is not None and rows >= first_s:
            break
    counts = np.concatenate(tables)[:first_s] if tables else np.zeros((0, 1), np.int64)
    if not counts.any():
        raise InvalidSettingsError([f"{path.name}: it has no event"])
    return Trace(path.name, counts if len(file.names) > 2 else counts[:, 0])


def _check_table(file: TraceFile) -> None:
    first, *others = file.names
    are_partitions = others == [f"p{number}" for number in range(len(others))]
    if first != SECOND or not others or (len(others) > 1 and not are_partitions):
        file.refuse_header(f"{','.join(file.names)[:80]!r} is not the header; must be {FORM}")


def _table(file: TraceFile, first: int, second: int, columns: dict[str, Any]) -> IntArray:
    """Return the events of successive seconds, shape (rows, columns). second: the one expected in the first row."""
    seconds = file.numbers(first, SECOND, columns[SECOND])
    expected = np.arange(second, second + len(seconds))
    file.check(first, [(SECOND, seconds, seconds >= MAX_DURATION_S, TOO_LONG)])
    if (seconds != expected).any():
        at = int((seconds != expected).argmax())
        file.refuse(first + at, f"second {seconds[at]:.12g} must be {expected[at]}; write one row for each second")
    values = [file.numbers(first, name, column) for name, column in columns.items() if name != SECOND]
    for name, events in zip(file.names[1:], values, strict=True):
        checks = [
            (name, events, events < 0, "is negative"),
            (name, events, events > MAX_EVENTS, f"is more than {MAX_EVENTS:,} in a second"),
            (name, events, events != np.floor(events), "must be a whole number"),
        ]
        file.check(first, checks)
    return np.stack(values, axis=1).astype(np.int64)


TOO_LONG: Final = f"is {MAX_DURATION_S:,} or more; seconds count from the start of the run"


def _event_trace(file: TraceFile, partitions: int | None, first_s: int | None) -> EventTrace:
    declared = file.metadata.get(PARTITIONS)
    if declared is not None and not (declared.isdigit() and len(declared) < 6):
        file.refuse_header(f"metadata {PARTITIONS.decode()} = {declared[:20]!r}: is not a number of partitions")
    width = partitions if declared is None else int(declared)
    counts = np.zeros((1, width or 1), dtype=np.int64)
    end_s = 0
    for part in _schedules(file, None if declared is None and PARTITION in file.names else width, first_s):
        second = part.offset_us // SECOND_US
        end_s, width = int(second[-1]) + 1, max(counts.shape[1], int(part.partition.max()) + 1)
        if end_s * width > MAX_CELLS:
            long = f"{end_s:,} s of {width} partitions: seconds × partitions must be at most {MAX_CELLS:,}"
            raise InvalidSettingsError([f"{file.path.name}: {long}; use a part of it"])
        counts = _grow(counts, end_s, width)
        begin = int(second[0])
        cell = (second - begin) * width + part.partition
        counts[begin:end_s] += np.bincount(cell, minlength=(end_s - begin) * width).reshape(-1, width)
    if not end_s:
        raise InvalidSettingsError([f"{file.path.name}: it has no event"])
    return EventTrace(file.path, counts.shape[1], end_s, counts[:end_s])


def _grow(counts: IntArray, seconds: int, partitions: int) -> IntArray:
    if seconds <= counts.shape[0] and partitions == counts.shape[1]:
        return counts
    larger = np.zeros((max(counts.shape[0], min(2 * seconds, MAX_CELLS // partitions)), partitions), dtype=np.int64)
    larger[: counts.shape[0], : counts.shape[1]] = counts
    return larger


def _schedules(
    file: TraceFile, partitions: int | None, first_s: int | None, *, keys: bool = False
) -> Iterator[Schedule]:
    """Yield the rows as events, in parts that are not empty. Raises InvalidSettingsError."""
    names, has_partition = set(file.names), PARTITION in file.names
    is_known = names <= {AT, PARTITION, KEY, SIZE} and len(names) == len(file.names)
    if not (is_known and (has_partition or KEY in names)):
        file.refuse_header(f"{','.join(file.names)[:80]!r} is not the header; must be {FORM}")
    with_key = KEY in names and (keys or not has_partition)
    columns = [AT, *([PARTITION] if has_partition else []), *([KEY] if with_key else [])]
    last_us = 0
    for part in file.parts(columns):
        events = _events(file, part, partitions or MAX_PARTITIONS, last_us)
        last_us = int(events.offset_us[-1])
        count = len(events) if first_s is None else int(events.offset_us.searchsorted(first_s * SECOND_US))
        if count:
            yield events[:count]
        if count < len(events):
            return


def _events(file: TraceFile, part: Part, partitions: int, last_us: int) -> Schedule:
    """Return rows as events. last_us: time of the previous event. Raises InvalidSettingsError."""
    first, columns = part
    at_s = file.numbers(first, AT, columns[AT])
    key = _hash_keys(columns[KEY]) if KEY in columns else None
    if PARTITION in columns:
        partition = file.numbers(first, PARTITION, columns[PARTITION])
    elif key is None or partitions == MAX_PARTITIONS:
        file.refuse(first, f"there is no column {PARTITION}: set the number for the topic with --set partitions=…")
    else:  # the same partition for the same key; events without a key are spread over all
        number = np.where(key == NO_KEY, np.arange(first, first + len(key)), key).astype(np.uint64)
        number *= np.uint64(HASH_MULTIPLIER)
        partition = ((number ^ (number >> np.uint64(32))) % np.uint64(partitions)).astype(np.float64)
    offset_us = np.round(np.clip(at_s, 0, MAX_DURATION_S) * SECOND_US).astype(np.int64)
    too_high = f"must be less than {partitions}, the topic's partitions; --set partitions=… changes that"
    is_earlier: npt.NDArray[np.bool_] = np.diff(offset_us, prepend=last_us) < 0
    file.check(
        first,
        [
            (AT, at_s, at_s < 0, "is negative"),
            (AT, at_s, at_s >= MAX_DURATION_S, TOO_LONG),
            (PARTITION, partition, partition < 0, "is negative"),
            (PARTITION, partition, partition != np.floor(partition), "must be a whole number"),
            (PARTITION, partition, partition >= partitions, too_high),
            (AT, at_s, is_earlier, "is before the event above; sort the events by at_s"),
        ],
    )
    return Schedule(offset_us, partition.astype(np.int32), key)


def _hash_keys(column: Any) -> IntArray:
    """Return a number for each key: integers unchanged, others hashed, NO_KEY for a missing key and for NaN."""
    from pyarrow import ArrowException, compute, int64, types  # noqa: PLC0415

    with suppress(ArrowException):  # larger than 63 bits: hashed
        if types.is_integer(column.type):
            return np.asarray(compute.fill_null(column.cast(int64()), NO_KEY).to_numpy(zero_copy_only=False))
    coded = compute.dictionary_encode(column, null_encoding="encode")
    coded = coded.combine_chunks() if hasattr(coded, "combine_chunks") else coded
    keys = coded.dictionary.to_pylist()
    values = [NO_KEY if key in (None, "", b"") or key != key else key_hash(key) for key in keys]  # noqa: PLR0124  NaN
    hashes: IntArray = np.array(values, dtype=np.int64)
    return hashes.take(np.asarray(coded.indices))


def key_hash(key: object, secret: bytes = b"") -> int:
    """Return a 63-bit hash of a key. secret: prevents that a key is found by hashing guesses."""
    data = key if isinstance(key, bytes) else str(key).encode()
    return int.from_bytes(blake2b(data, digest_size=8, key=secret).digest(), "big") >> 1
