"""Report on a run or on files of events, with Spark if it is needed, and write result.json."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from zlib import crc32

from contracts.topics import Topic
from report import ReportError, stored
from report.columns import Packed, divide, numbered
from report.figures import report_rows
from report.records import JoinedEvents, Record, event_id
from report.result import Result
from report.run_info import EVENTS, RunInfo, load_run
from report.spark import innermost_cause
from report.table import T, Table, concat
from report.topics import RunReader, gather, report_here

LOG_FILE: Final = "spark.log"
RECORDS_PER_TASK: Final = 500_000
"""Records that a task joins in its memory."""
EVENTS_PER_TASK: Final = 1_500_000
COMMON_COLUMNS: Final = (
    "intended_us", "placed_us", "accepted_us", "received_us", "done_us", "partition", "offset", "replica", "epoch",
)  # fmt: skip
"""Columns of rows that are divided by a column."""


def report_run(folder: Path, master: str) -> Result:
    """Report on the run in `folder`, and write result.json there. Read its Parquet files, or else its topics.

    master: Spark's master. Empty: Spark on this machine, but only if the run is too large for this process.
    Raises ReportError, and InvalidSettingsError for an invalid client properties file.
    """
    if not master and (result := report_here(folder)):
        return result
    with _spark_errors(folder):
        if not stored.is_complete(folder / EVENTS):
            reader = RunReader(folder)
            gather(reader, folder, partial(write_events, context=_context(folder, master), reader=reader))
        return report_rows(
            folder, load_run(folder), str(folder), lambda: SparkRows(_context(folder, master), folder / EVENTS)
        )


def report_files(folder: Path, run: RunInfo, master: str, events: str, journal: str | None = None) -> Result:
    """Report on the events at a path or URI, and write result.json into `folder`. Raises ReportError.

    journal: path or URI; None: `journal.parquet` next to the events, else in the folder.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix="rows-", dir=folder) as temporary:
        place = Path(temporary, EVENTS)
        known = stored.copy_events(events, place)
        journal = journal or stored.journal_next_to(events)
        entries = stored.load_journal(folder) if journal is None else stored.read_journal(journal)
        if not master and stored.count(place) <= stored.MAX_EVENTS_IN_MEMORY:
            return report_rows(folder, run, events, lambda: stored.load_events(place, known), entries)
        with _spark_errors(folder):
            return report_rows(folder, run, events, lambda: SparkRows(_context(folder, master), place, known), entries)


def _context(folder: Path, master: str) -> Any:
    from report.spark.session import await_workers, open_session  # noqa: PLC0415

    spark = open_session(master or "local[2]", folder / LOG_FILE)
    await_workers(spark)
    return spark.sparkContext


@contextmanager
def _spark_errors(folder: Path) -> Iterator[None]:
    try:
        from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # noqa: PLC0415  it ships no types
        from pyspark.errors import PySparkException  # noqa: PLC0415
    except ModuleNotFoundError as missing:
        remedy = "pyspark is not installed: in a clone, pip install '.[spark]'"
        raise ReportError(f"{folder}: this report needs Spark, but {remedy}") from missing
    try:
        yield
    except (PySparkException, Py4JError) as failed:
        cause = innermost_cause(failed)
        raise ReportError(f"{folder}: Spark could not read the run ({cause}); see {folder / LOG_FILE}") from failed


def write_events(place: Path, refused: Mapping[str, int], *, context: Any, reader: RunReader) -> set[int]:
    """Read each partition in a task; then one task joins all records of an event. Implements EventWriter."""
    parts = reader.partitions(reader.events)
    tasks = max(context.defaultParallelism, -(-reader.count() // RECORDS_PER_TASK))
    records = context.parallelize(parts, len(parts)).flatMap(partial(_read, reader.folder)).keyBy(event_id)
    join = partial(_join, topics=reader.events, refused=dict(refused), place=place)
    return set(records.partitionBy(tasks, _hash).values().mapPartitionsWithIndex(join).collect())


def _read(folder: Path, partition: tuple[str, int]) -> Iterator[Record]:
    return RunReader(folder).records([partition])


def _hash(event: str) -> int:
    return crc32(event.encode(errors="replace"))


def _join(
    task: int, records: Iterator[Record], topics: Mapping[str, Topic], refused: Mapping[str, int], place: Path
) -> Iterator[int]:
    joined = JoinedEvents(topics, refused)
    for record in records:
        joined.add(record)
    yield from joined.write(place / f"part-{task}.parquet")


class SparkRows:
    """Event rows in the Parquet at `place`. A worker reads a row group; Spark groups rows with equal values."""

    def __init__(self, context: Any, place: Path, known: frozenset[str] = stored.OPTIONAL_COLUMNS) -> None:
        self.known = known & {*stored.check_events(place)}
        groups = [group for group in stored.row_groups(place) if group[2]]
        self._tables = context.parallelize(groups, max(1, len(groups))).map(_table)
        self._tasks = max(2 * context.defaultParallelism, sum(rows for *_, rows in groups) // EVENTS_PER_TASK)
        self._divided: dict[str, Any] = {}

    def pieces(self, make: Callable[[Table], T], by: str = "") -> list[T]:
        """Return `make(piece)` of each piece. Rows with the same value of `by` are in one piece."""
        if not by:
            return list(self._tables.map(make).collect())
        columns = (*COMMON_COLUMNS, *([stored.CUSTOMER_COLUMN] if by == stored.CUSTOMER_COLUMN else []))
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
