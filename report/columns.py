"""Event rows in memory: packed columns, handed out in pieces that two threads process."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from report.measures import MINUTE_US
from report.table import MAX_INT, NONE, Ints, T, Table

if TYPE_CHECKING:
    import pyarrow

EVENTS_PER_PIECE: Final = 500_000
THREADS: Final = 2
Indices = NDArray[np.uint32]


class StoredRows:
    """The event rows of a run in Parquet. A column is read once, and kept in as few bytes as its values need."""

    def __init__(
        self,
        names: Iterable[str],
        read: "Callable[[str], pyarrow.ChunkedArray]",
        known: frozenset[str],
    ) -> None:
        """read: returns a column by its name; called once for each column that is used."""
        self._names, self._read, self._lock = {*names}, read, Lock()
        self.known = known & self._names
        numbers, self._replicas = numbered(read("replica"))
        self._number, self._columns = len(numbers), {"replica": Packed(numbers)}
        self._pieces: dict[str, list[slice | Indices]] = {}

    def table(self, rows: slice | Indices = slice(None)) -> Table:
        """Return these rows; default: all."""
        return Table({}, self._replicas, lambda name: self._column(name).rows(rows))

    def pieces(self, make: Callable[[Table], T], by: str = "") -> list[T]:
        """Return `make(piece)` of each piece. Two threads compute them; numpy releases the interpreter lock."""
        if by not in self._pieces:
            self._pieces[by] = list(self._divide(by))
        with ThreadPoolExecutor(THREADS) as pool:
            return list(pool.map(lambda rows: make(self.table(rows)), self._pieces[by]))

    def _divide(self, by: str) -> Iterator[slice | Indices]:
        """Yield the rows of each piece; equal values of `by` are in one piece."""
        pieces = max(1, -(-self._number // EVENTS_PER_PIECE))
        if not by or pieces == 1:
            yield from (
                slice(at, at + EVENTS_PER_PIECE) for at in range(0, pieces * EVENTS_PER_PIECE, EVENTS_PER_PIECE)
            )
            return
        values = self._column("intended_us" if by == "minute" else by).rows(slice(None))
        piece = ((values // MINUTE_US if by == "minute" else values) % pieces).astype(np.uint16)
        order = np.argsort(piece, kind="stable").astype(np.uint32)
        yield from np.split(order, np.cumsum(np.bincount(piece, minlength=pieces))[:-1])

    def _column(self, name: str) -> "Packed":
        with self._lock:
            if name not in self._columns:
                if name not in self._names:
                    raise KeyError(name)
                self._columns[name] = Packed(integers(self._read(name)))
            return self._columns[name]


class Packed:
    """Integers as their difference from the smallest, 0 for NONE, in the smallest unsigned type."""

    def __init__(self, values: Ints) -> None:
        known = values[values != NONE]
        self._least = int(known.min()) - 1 if len(known) else 0
        most = int(known.max()) - self._least if len(known) else 0
        self._whole = most > MAX_INT
        packed = values if self._whole else np.where(values == NONE, 0, values - self._least)
        self._values = packed.astype(np.int64 if self._whole else np.min_scalar_type(most))

    def rows(self, rows: slice | Indices) -> Ints:
        """Return the values of these rows."""
        found = self._values[rows]
        if self._whole:
            return found
        return np.where(found == 0, NONE, found.astype(np.int64) + self._least)


def integers(column: "pyarrow.ChunkedArray") -> Ints:
    """Return a column as integers; NONE where it has no value."""
    import pyarrow as pa  # noqa: PLC0415  takes 0.1 s, and needs the bench extra
    from pyarrow import compute  # noqa: PLC0415

    return np.asarray(compute.fill_null(compute.cast(column, pa.int64()), NONE).to_numpy(), np.int64)


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
