"""Event rows in memory: packed columns, handed out in pieces that two threads process."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import TYPE_CHECKING, Any, Final
from zlib import crc32

import numpy as np

from report.measures import MINUTE_US
from report.table import NONE, Ints, T, Table

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
        if by not in self._pieces:
            begins = range(0, pieces * EVENTS_PER_PIECE, EVENTS_PER_PIECE)
            slices = [slice(begin, begin + EVENTS_PER_PIECE) for begin in begins]
            self._pieces[by] = divide(self.table(), by, pieces) if by and pieces > 1 else slices
        with ThreadPoolExecutor(2) as pool:
            return list(pool.map(lambda rows: make(self.table(rows)), self._pieces[by]))

    def _column(self, name: str) -> "Packed":
        with self._lock:
            if name not in self._columns:
                self._columns[name] = Packed(self._read(name))
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
    """Integers in the smallest unsigned type. Each is stored as a difference from the smallest value; 0 means NONE."""

    def __init__(self, column: "pyarrow.ChunkedArray") -> None:
        from pyarrow import compute, from_numpy_dtype  # noqa: PLC0415

        column = compute.cast(column, "int64")
        bounds, self._has_gaps = compute.min_max(column).as_py(), column.null_count > 0
        self._least = max((bounds["min"] or 0) - 1, NONE)
        kind = from_numpy_dtype(np.min_scalar_type((bounds["max"] or 0) - self._least))
        packed = compute.subtract(column, self._least)  # modulo 2^64
        packed = compute.fill_null(packed, 0) if self._has_gaps else packed
        self._values = compute.cast(packed, kind, safe=False).to_numpy()

    def rows(self, rows: slice | Ints = slice(None)) -> Ints:
        """Return the values of these rows, NONE where there is none; default: all."""
        packed = self._values[rows]
        found: Ints = packed.astype(np.int64)
        found += self._least
        if self._has_gaps:
            found[packed == 0] = NONE
        return found


def numbered(column: "pyarrow.ChunkedArray") -> "tuple[pyarrow.ChunkedArray, list[str]]":
    """Return the numbers of replicas, and their names in order. See `table.NAME_COLUMNS`."""
    from pyarrow import array, compute, string  # noqa: PLC0415  takes 0.1 s, and needs the bench extra

    column = column.cast(string())
    names = sorted(compute.unique(column).drop_null().to_pylist())
    return compute.fill_null(compute.index_in(column, value_set=array(names, string())), -1), names
