"""Writes a trace of single events from rows in any order: sorted by time, in memory that does not grow with them.

Rows are spilled to disk as runs sorted by time; then the runs are merged, a piece of each at a time.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from loadgen.event_trace import PARTITIONS

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
        runs = [np.load(run, mmap_mode="r") for run in self._runs]
        first_ms = min(int(run["at_ms"][0]) for run in runs)
        last_ms = max(int(run["at_ms"][-1]) for run in runs)
        fields = {"at_s": "double", "partition": "int32", "key": "int64", "size": "int32"}
        schema = pyarrow.schema(
            [(name, pyarrow.type_for_alias(kind)) for name, kind in fields.items()],
            metadata={PARTITIONS: str(partitions)},
        )
        temporary = out.with_name(out.name + ".tmp")
        try:
            with parquet.ParquetWriter(temporary, schema, compression="zstd") as file:
                for rows in merged(runs, self._run_rows):
                    columns = [
                        (rows["at_ms"] - first_ms // 1000 * 1000) / 1000,
                        rows["partition"],
                        rows["key"],
                        rows["size"],
                    ]
                    arrays = [pyarrow.array(np.ascontiguousarray(column)) for column in columns]
                    arrays[2] = pyarrow.array(np.ascontiguousarray(rows["key"]), mask=rows["key"] == NO_KEY)
                    file.write_table(pyarrow.table(arrays, schema=schema))
            temporary.replace(out)
        finally:
            temporary.unlink(missing_ok=True)
        return (last_ms - first_ms) / 1000

    def _spill(self) -> None:
        if not self._pending:
            return
        rows = np.concatenate(self._pending)
        self._pending, self._waiting = [], 0
        run = self._folder / f"{len(self._runs)}.npy"
        np.save(run, rows[np.argsort(rows["at_ms"], kind="stable")])
        self._runs.append(run)


def merged(runs: Sequence[Rows], piece_rows: int) -> Iterator[Rows]:
    """Yield the rows of sorted runs by time, those of one time run by run; about `piece_rows` a piece."""
    each = max(1, piece_rows // len(runs))
    at = [0] * len(runs)
    while left := [number for number, run in enumerate(runs) if at[number] < len(run)]:
        edge = min(runs[number]["at_ms"][min(at[number] + each, len(runs[number])) - 1] for number in left)
        before = [_taken(runs, at, number, edge, "left") for number in left]  # fewer than `each` of every run
        rows = np.concatenate(before)
        if len(rows):
            yield rows[np.argsort(rows["at_ms"], kind="stable")]
        for number in left:  # any number of rows may have one time
            same = _taken(runs, at, number, edge, "right")
            for begin in range(0, len(same), piece_rows):
                yield same[begin : begin + piece_rows]


def _taken(runs: Sequence[Rows], at: list[int], number: int, edge: int, side: Any) -> Rows:
    """Return the next rows of a run, those before `edge` (left) or up to it (right), and go behind them."""
    begin = at[number]
    at[number] = begin + int(runs[number]["at_ms"][begin:].searchsorted(edge, side))
    return runs[number][begin : at[number]]
