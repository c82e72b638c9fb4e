"""Writes a trace of single events from rows in any order: sorted by time, in memory that does not grow with them.

Rows are spilled to disk as runs sorted by time; then the runs are merged, a piece of each at a time.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any, Final

import numpy as np

from loadgen.trace import PARTITIONS

Row = tuple[int, int, int, int]
"""Time (ms since the epoch), key's hash (or NO_KEY), partition, size (bytes)."""
ROW: Final = np.dtype([("at_ms", "i8"), ("key", "i8"), ("partition", "i4"), ("size", "i4")])
Rows = np.ndarray[Any, np.dtype[Any]]
NO_KEY: Final = -1
RUN_ROWS: Final = 1 << 20
"""Rows of a run, and about as many as a merge holds: 24 MB."""


class EventWriter:
    """Takes rows; `write` makes the file. `folder` holds the runs meanwhile, 24 bytes a row."""

    def __init__(self, folder: Path, run_rows: int = RUN_ROWS) -> None:
        self._folder = folder
        self._run_rows = run_rows
        self._pending: list[Rows] = []
        self._waiting = 0
        self._runs: list[Path] = []
        self._times: list[int] = []
        """Of the first and the last row of each run, ms since the epoch."""
        self.rows = 0

    def add(self, rows: Sequence[Row]) -> None:
        """Take rows. Raises OSError where the disk is full."""
        if rows:
            self._pending.append(np.array(rows, dtype=ROW))
            self._waiting += len(rows)
            self.rows += len(rows)
        if self._waiting >= self._run_rows:
            self._spill()

    def write(self, out: Path, partitions: int) -> float:
        """Write a Parquet file at once or not at all; return the seconds from the first event to the last.

        Times count from the whole second in which the first event was written. Raises OSError.
        """
        import pyarrow  # noqa: PLC0415  a tenth of a second
        from pyarrow import parquet  # noqa: PLC0415

        self._spill()
        piece_rows = max(1, self._run_rows // len(self._runs))
        runs = [_pieces(run, piece_rows) for run in self._runs]
        first_ms, last_ms = min(self._times), max(self._times)
        fields = {"at_s": "double", "partition": "int32", "key": "int64", "size": "int32"}
        schema = pyarrow.schema(
            [(name, pyarrow.type_for_alias(kind)) for name, kind in fields.items()],
            metadata={PARTITIONS: str(partitions)},
        )
        temporary = out.with_name(out.name + ".tmp")
        try:
            with parquet.ParquetWriter(temporary, schema, compression="zstd") as file:
                for rows in gathered(merged(runs), self._run_rows):
                    columns = [
                        (rows["at_ms"] - first_ms // 1000 * 1000) / 1000,
                        rows["partition"],
                        rows["key"],
                        rows["size"],
                    ]
                    arrays = [pyarrow.array(np.ascontiguousarray(column)) for column in columns]
                    arrays[2] = pyarrow.array(np.ascontiguousarray(rows["key"]), mask=rows["key"] == NO_KEY)
                    file.write_table(pyarrow.table(arrays, schema=schema), row_group_size=len(rows))
            temporary.replace(out)
        finally:
            temporary.unlink(missing_ok=True)
        return (last_ms - first_ms) / 1000

    def _spill(self) -> None:
        if not self._pending:
            return
        rows = np.concatenate(self._pending)
        self._pending, self._waiting = [], 0
        run = self._folder / str(len(self._runs))
        rows = rows[np.argsort(rows["at_ms"], kind="stable")]
        rows.tofile(run)
        self._runs.append(run)
        self._times += [int(rows["at_ms"][0]), int(rows["at_ms"][-1])]


def _pieces(run: Path, rows: int) -> Iterator[Rows]:
    for first in count(0, rows):
        piece = np.fromfile(run, ROW, rows, offset=first * ROW.itemsize)
        if not len(piece):
            return
        yield piece


def merged(runs: Sequence[Iterator[Rows]]) -> Iterator[Rows]:
    """Yield the rows of sorted runs, each read piece by piece, by time; those of one time run by run."""
    heads = [next(run, None) for run in runs]
    while left := [head for head in heads if head is not None]:
        edge = min(int(head["at_ms"][-1]) for head in left)
        rows = np.concatenate([head[: head["at_ms"].searchsorted(edge)] for head in left])
        if len(rows):
            yield rows[np.argsort(rows["at_ms"], kind="stable")]
        for number, run in enumerate(runs):  # any number of rows may have one time
            while (head := heads[number]) is not None:
                first, behind = head["at_ms"].searchsorted(edge), head["at_ms"].searchsorted(edge, "right")
                if behind > first:
                    yield head[first:behind]
                heads[number] = head[behind:] if behind < len(head) else next(run, None)
                if behind < len(head):
                    break


def gathered(pieces: Iterable[Rows], rows: int) -> Iterator[Rows]:
    """Yield the same rows in pieces of so many or more, the last one excepted; less than a piece more."""
    pending: list[Rows] = []
    waiting = 0
    for piece in pieces:
        pending.append(piece)
        waiting += len(piece)
        if waiting >= rows:
            yield np.concatenate(pending)
            pending, waiting = [], 0
    if pending:
        yield np.concatenate(pending)
