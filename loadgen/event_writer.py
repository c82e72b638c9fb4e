"""Writes a trace of single events, sorted by time. SQLite sorts on disk, so memory does not grow with the trace."""

import errno
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np

from loadgen.trace import PARTITIONS, SERVICE_RATE

Row = tuple[int, int, int, int]
"""Time (ms since the epoch), hash of the key (or NO_KEY), partition, size (bytes)."""
ROW: Final = np.dtype([("at_ms", "i8"), ("key", "i8"), ("partition", "i4"), ("size", "i4")])
NO_KEY: Final = -1
GROUP_ROWS: Final = 1 << 20
FETCH_ROWS: Final = 1 << 16
CACHE_KIB: Final = 65_536


class EventWriter:
    """Collects rows in any order, in `folder` (about 25 bytes each), until `write` writes the file."""

    def __init__(self, folder: Path) -> None:
        os.environ["SQLITE_TMPDIR"] = str(folder)  # the sort spills there, not into /tmp
        self._rows = sqlite3.connect(folder / "rows.sqlite", isolation_level=None)
        self._rows.executescript(
            f"PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA cache_size=-{CACHE_KIB}; PRAGMA temp_store=FILE;"
            "CREATE TABLE rows (at_ms INTEGER, key INTEGER, partition INTEGER, size INTEGER)"
        )
        self.rows = 0

    def add(self, rows: list[Row]) -> None:
        """Store rows. Raises OSError if the disk is full."""
        with _disk_errors():
            self._rows.execute("BEGIN")
            self._rows.executemany("INSERT INTO rows VALUES (?, ?, ?, ?)", rows)
            self._rows.execute("COMMIT")
        self.rows += len(rows)

    def write(self, out: Path, partitions: int, service_rate: float | None = None) -> float:
        """Write a Parquet file atomically. Return the seconds from the first event to the last. Raises OSError.

        Times count from the whole second of the first event. service_rate: of a busy member, events/s; None: unknown.
        """
        import pyarrow  # noqa: PLC0415  a tenth of a second
        from pyarrow import parquet  # noqa: PLC0415

        fields = {"at_s": "double", "partition": "int32", "key": "int64", "size": "int32"}
        schema = pyarrow.schema(
            [(name, pyarrow.type_for_alias(kind)) for name, kind in fields.items()],
            metadata={PARTITIONS: str(partitions)} | ({SERVICE_RATE: str(service_rate)} if service_rate else {}),
        )
        temporary = out.with_name(out.name + ".tmp")
        try:
            with _disk_errors(), parquet.ParquetWriter(temporary, schema, compression="zstd") as file:
                first_ms, last_ms = self._rows.execute("SELECT min(at_ms), max(at_ms) FROM rows").fetchone()
                for rows in self._sorted():
                    arrays = [
                        pyarrow.array((rows["at_ms"] - first_ms // 1000 * 1000) / 1000),
                        pyarrow.array(np.ascontiguousarray(rows["partition"])),
                        pyarrow.array(np.ascontiguousarray(rows["key"]), mask=rows["key"] == NO_KEY),
                        pyarrow.array(np.ascontiguousarray(rows["size"])),
                    ]
                    file.write_table(pyarrow.table(arrays, schema=schema), row_group_size=len(rows))
            temporary.replace(out)
        finally:
            temporary.unlink(missing_ok=True)
            self._rows.close()
        return float(last_ms - first_ms) / 1000

    def _sorted(self) -> Iterator[np.ndarray[Any, np.dtype[Any]]]:
        cursor = self._rows.execute("SELECT at_ms, key, partition, size FROM rows ORDER BY at_ms, rowid")
        pending: list[np.ndarray[Any, np.dtype[Any]]] = []
        while rows := cursor.fetchmany(FETCH_ROWS):
            pending.append(np.array(rows, dtype=ROW))
            if len(pending) * FETCH_ROWS >= GROUP_ROWS:
                yield np.concatenate(pending)
                pending = []
        if pending:
            yield np.concatenate(pending)


@contextmanager
def _disk_errors() -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as error:
        full = "full" in str(error)
        raise OSError(errno.ENOSPC if full else errno.EIO, str(error)) from error
