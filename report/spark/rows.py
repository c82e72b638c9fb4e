"""The event rows of a large run, in pieces. Spark workers call the same functions as a report in memory."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

from report.columns import Packed, divide, numbered
from report.stored import CUSTOMER_COLUMN, OPTIONAL_COLUMNS, check_events, row_groups
from report.table import T, Table, concat

EVENTS_PER_TASK: Final = 1_500_000
COMMON_COLUMNS: Final = (
    "intended_us", "placed_us", "accepted_us", "received_us", "done_us", "partition", "offset", "replica", "epoch",
)  # fmt: skip
"""Columns of rows that are divided by a column."""


class SparkRows:
    """Event rows in the Parquet at `place`. A worker reads a row group; Spark groups rows with equal values."""

    def __init__(self, context: Any, place: Path, known: frozenset[str] = OPTIONAL_COLUMNS) -> None:
        self.known = known & {*check_events(place)}
        groups = [group for group in row_groups(place) if group[2]]
        self._tables = context.parallelize(groups, max(1, len(groups))).map(_table)
        self._tasks = max(2 * context.defaultParallelism, sum(rows for *_, rows in groups) // EVENTS_PER_TASK)
        self._divided: dict[str, Any] = {}

    def pieces(self, make: Callable[[Table], T], by: str = "") -> list[T]:
        """Return `make(piece)` of each piece. Rows with the same value of `by` are in one piece."""
        if not by:
            return list(self._tables.map(make).collect())
        columns = (*COMMON_COLUMNS, *([CUSTOMER_COLUMN] if by == CUSTOMER_COLUMN else []))
        if by not in self._divided:
            divided = self._tables.flatMap(partial(_divided, by=by, parts=self._tasks, columns=columns))
            self._divided[by] = divided.partitionBy(self._tasks, int).values()
        return list(self._divided[by].mapPartitions(partial(_joined, make=make, columns=columns)).collect())


def _table(row_group: tuple[str, int, int]) -> Table:
    from pyarrow import parquet  # noqa: PLC0415  in the worker

    place, group, _ = row_group
    file = parquet.ParquetFile(place)

    def column(name: str) -> Any:
        return file.read_row_group(group, [name]).column(name)

    numbers, replicas = numbered(column("replica"))
    return Table({"replica": Packed(numbers).rows()}, replicas, lambda name: Packed(column(name)).rows())


def _divided(events: Table, by: str, parts: int, columns: tuple[str, ...]) -> Iterator[tuple[int, Table]]:
    for part, rows in enumerate(divide(events, by, parts)):
        if len(rows):
            yield part, events.where(rows).only(*columns)


def _joined(tables: Iterator[Table], make: Callable[[Table], T], columns: tuple[str, ...]) -> Iterator[T]:
    if found := list(tables):
        yield make(concat(found, *columns))
