"""Event rows in memory: packed columns, handed out in pieces that two threads process."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import TYPE_CHECKING, Any, Final
from zlib import crc32

import numpy as np

from report.measures import MINUTE_US
from report.table import MAX_INT, NONE, Ints, T, Table

if TYPE_CHECKING:
    import pyarrow

EVENTS_PER_PIECE: Final = 500_000


class StoredRows:
    """The event rows of a run in Parquet. A column is read once, and kept in as few bytes as its values need."""

    def __init__(
        self, names: Iterable[str], read: "Callable[[str], pyarrow.ChunkedArray]", known: frozenset[str]
    ) -> None:
        """read: returns a column by its name; called once for each column that is used."""
        self._read, self._lock, self.known = read, Lock(), known & {*names}
        numbers, self._replicas = numbered(read("replica"))
        self._number, self._columns = len(numbers), {"replica": Packed(numbers)}
        self._pieces: dict[str, list[Any]] = {}

    def table(self, rows: slice | Ints = slice(None)) -> Table:
        """Return these rows; default: all."""
        return Table({}, self._replicas, lambda name: self._column(name).rows(rows))

    def pieces(self, make: Callable[[Table], T], by: str = "") -> list[T]:
        """Return `make(piece)` of each piece. Two threads compute them; numpy releases the interpreter lock."""
        pieces = max(1, -(-self._number // EVENTS_PER_PIECE))
        if by not in self._pieces and (pieces == 1 or not by):
            begins = range(0, pieces * EVENTS_PER_PIECE, EVENTS_PER_PIECE)
            self._pieces[by] = [slice(begin, begin + EVENTS_PER_PIECE) for begin in begins]
        elif by not in self._pieces:
            self._pieces[by] = divide(self.table(), by, pieces)
        with ThreadPoolExecutor(2) as pool:
            return list(pool.map(lambda rows: make(self.table(rows)), self._pieces[by]))

    def _column(self, name: str) -> "Packed":
        with self._lock:
            if name not in self._columns:
                self._columns[name] = Packed(integers(self._read(name)))
            return self._columns[name]


def divide(events: Table, by: str, parts: int) -> list[Any]:
    """Return the rows of each part. Rows with the same value of `by` get the same part, also in other tables."""
    if by == "replica":
        key = np.array([*(crc32(name.encode()) for name in events.names), 0])[events["replica"]]
    else:
        key = events["intended_us"] // MINUTE_US if by == "minute" else events[by]
    part = (key % parts).astype(np.uint16)
    order = np.argsort(part, kind="stable").astype(np.uint32)
    return np.split(order, np.cumsum(np.bincount(part, minlength=parts))[:-1])


class Packed:
    """Integers in the smallest unsigned type. Each is stored as a difference from the smallest one; 0 means NONE."""

    def __init__(self, values: Ints) -> None:
        known = values[values != NONE]
        self._least = int(known.min()) - 1 if len(known) else 0
        most = int(known.max()) - self._least if len(known) else 0
        self._whole = most > MAX_INT
        packed = values if self._whole else np.where(values == NONE, 0, values - self._least)
        self._values = packed.astype(np.int64 if self._whole else np.min_scalar_type(most))

    def rows(self, rows: slice | Ints) -> Ints:
        """Return the values of these rows."""
        found = self._values[rows]
        return found if self._whole else np.where(found == 0, NONE, found.astype(np.int64) + self._least)


def integers(column: "pyarrow.ChunkedArray") -> Ints:
    """Return a column as integers; NONE where it has no value."""
    from pyarrow import compute  # noqa: PLC0415  takes 0.1 s, and needs the bench extra

    return np.asarray(compute.fill_null(compute.cast(column, "int64"), NONE).to_numpy(), np.int64)


def numbered(column: "pyarrow.ChunkedArray") -> tuple[Ints, list[str]]:
    """Return the numbers of replicas, and their names in order. See `table.NAME_COLUMNS`."""
    import pyarrow as pa  # noqa: PLC0415
    from pyarrow import compute  # noqa: PLC0415

    replica = compute.dictionary_encode(column.cast(pa.string())).combine_chunks()
    replica = replica.combine_chunks() if isinstance(replica, pa.ChunkedArray) else replica
    labels = replica.dictionary.to_pylist()
    order = sorted(range(len(labels)), key=labels.__getitem__)
    rank = np.append(np.argsort(np.array(order, np.int64)), -1)
    numbers = rank[compute.fill_null(replica.indices, -1).to_numpy(zero_copy_only=False)]
    return numbers.astype(np.int64), [labels[number] for number in order]
