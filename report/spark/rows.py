"""The event rows of a large run, piece by piece in Spark's workers: the same functions as in memory count them there.

A worker reads its piece from Parquet by pyarrow. Where equal values must lie together, Spark puts the rows together
first, in files beside the run's.
"""

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

from pyspark.sql import functions as f

from report.spark.files import Events, local
from report.stored import CUSTOMER, row_groups, table_of
from report.table import T, Table

SCRATCH: Final = "rows.tmp"
MINUTE_US: Final = 60_000_000
OF_EVERY: Final = (
    "intended_us", "placed_us", "accepted_us", "received_us", "done_us", "partition", "offset", "replica", "epoch",
)  # fmt: skip
"""Columns that are needed wherever rows are put together."""


class HandedOut:
    """Event rows in Spark. `close` removes what was written."""

    def __init__(self, events: Events, folder: Path, stored: Path | None = None) -> None:
        """Take rows of which `stored` is the Parquet that holds them all; None: they lie elsewhere."""
        self.known, self.customers = events.known, CUSTOMER in events.rows.columns
        self._rows, self._scratch = events.rows, folder / SCRATCH
        self._places = {} if stored is None else {"": stored}

    def pieces(self, make: Callable[[Table], T], by: str = "") -> list[T]:
        """Return what `make` finds in each piece of the rows; equal values of `by` lie in one."""
        if by not in self._places:
            self._places[by] = self._together(by)
        found = row_groups(self._places[by])
        if by:  # a file holds all rows of its values
            found = [(part, -1, 1) for part in dict.fromkeys(part for part, _, rows in found if rows)]
        units = [(str(part), group) for part, group, rows in found if rows]
        context = self._rows.sparkSession.sparkContext
        return list(context.parallelize(units, max(1, len(units))).map(partial(_piece, make)).collect())

    def close(self) -> None:
        """Remove what was written to put rows together."""
        shutil.rmtree(self._scratch, ignore_errors=True)

    def _together(self, by: str) -> Path:
        place, rows, also = self._scratch / (by or "all"), self._rows, [CUSTOMER] if by == CUSTOMER else []
        if by:
            key = f.floor(f.col("intended_us") / MINUTE_US) if by == "minute" else f.col(by)
            rows = rows.where(f.col(CUSTOMER).isNotNull()) if also else rows
            rows = rows.select(*OF_EVERY, *also).repartition(key)
        rows.write.mode("overwrite").parquet(local(place))
        return place


def _piece(make: Callable[[Table], T], unit: tuple[str, int]) -> T:
    from pyarrow import parquet  # noqa: PLC0415  in the worker

    place, group = unit
    file = parquet.ParquetFile(place)

    def column(name: str) -> Any:
        read = file.read([name]) if group < 0 else file.read_row_group(group, [name])
        return read.column(name)

    return make(table_of(file.schema_arrow.names, column))
