"""The event rows of a large run, piece by piece in Spark workers, which call the same functions as in memory.

A worker reads its piece from Parquet with pyarrow. If equal values must be in one piece, Spark first repartitions the
rows into temporary files.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from report.columns import integers, numbered
from report.measures import MINUTE_US
from report.stored import CUSTOMER_COLUMN, check_events, row_groups
from report.table import T, Table

COMMON_COLUMNS: Final = (
    "intended_us", "placed_us", "accepted_us", "received_us", "done_us", "partition", "offset", "replica", "epoch",
)  # fmt: skip
"""Columns of repartitioned rows."""


class SparkRows:
    """Event rows in the Parquet at `place`. scratch: folder for repartitioned rows."""

    def __init__(self, spark: SparkSession, place: Path, scratch: Path, known: frozenset[str]) -> None:
        self.known = known & {*check_events(place)}
        self._spark, self._scratch, self._places = spark, scratch, {"": place}

    def pieces(self, make: Callable[[Table], T], by: str = "") -> list[T]:
        """Return `make(piece)` of each piece; equal values of `by` are in one piece."""
        if by not in self._places:
            self._places[by] = self._repartition(by)
        found = row_groups(self._places[by])
        if by:  # each file has all rows of its values
            found = [(part, -1, 1) for part in dict.fromkeys(part for part, _, rows in found if rows)]
        units = [(part, group) for part, group, rows in found if rows]
        context = self._spark.sparkContext
        return list(context.parallelize(units, max(1, len(units))).map(partial(_piece, make)).collect())

    def _repartition(self, by: str) -> Path:
        place, also = self._scratch / by, [CUSTOMER_COLUMN] if by == CUSTOMER_COLUMN else []
        rows = self._spark.read.parquet(local(self._places[""]))
        rows = rows.where(f.col(CUSTOMER_COLUMN).isNotNull()) if also else rows
        key = f.floor(f.col("intended_us") / MINUTE_US) if by == "minute" else f.col(by)
        rows.select(*COMMON_COLUMNS, *also).repartition(key).write.mode("overwrite").parquet(local(place))
        return place


def local(place: Path) -> str:
    """Return the URI of a local file for Hadoop, whose default file system may be another one."""
    return f"file://{place.resolve()}"


def _piece(make: Callable[[Table], T], unit: tuple[str, int]) -> T:
    from pyarrow import parquet  # noqa: PLC0415  in the worker

    place, group = unit
    file = parquet.ParquetFile(place)

    def column(name: str) -> Any:
        if name not in file.schema_arrow.names:
            raise KeyError(name)
        return (file.read([name]) if group < 0 else file.read_row_group(group, [name])).column(name)

    numbers, replicas = numbered(column("replica"))
    return make(Table({"replica": numbers}, replicas, lambda name: integers(column(name))))
