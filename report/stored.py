"""Read the events and the journal of a run from Parquet, local or remote, without Spark."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from contracts.events import SCHEMA_VERSION
from contracts.journal import JournalDecoder, JournalEntry
from contracts.topics import Topic
from contracts.validation import DECODE_ERRORS
from report import ReportError
from report.columns import StoredRows
from report.run_info import JOURNAL

if TYPE_CHECKING:
    import pyarrow
    from pyarrow import dataset, fs

MAX_EVENTS_IN_MEMORY: Final = 12_000_000
"""Most events that one process handles, in 2.6 GiB; more are distributed by Spark."""
SUCCESS_FILE: Final = "_SUCCESS"
"""File that is written last into a Parquet folder and marks it as complete."""
COLUMN_OF: Final[dict[Topic, str]] = {
    Topic.ORDERS_PLACED: "placed",
    Topic.PAYMENTS_REQUESTED: "requested",
    Topic.PAYMENTS_SETTLED: "settled",
    Topic.SHIPMENTS_SCHEDULED: "shipped",
    Topic.NOTIFICATIONS_SENT: "notified",
}
"""Topic → prefix of its columns in events.parquet: `<prefix>_records`, `<prefix>_differ`."""
CUSTOMER_COLUMN: Final = "customer_hash"
REPLICA_COLUMNS: Final = ("replica", "received_us")
"""Columns about the replica that served an event. Causes of late events need both."""
LOCATION_COLUMNS: Final = ("partition", "offset")
REQUESTED_COUNT: Final = f"{COLUMN_OF[Topic.PAYMENTS_REQUESTED]}_records"
SETTLED_COUNT: Final = f"{COLUMN_OF[Topic.PAYMENTS_SETTLED]}_records"
DEAD_LETTERS_COLUMN: Final = "dead_letters"
OPTIONAL_COLUMNS: Final = frozenset(
    {*REPLICA_COLUMNS, *LOCATION_COLUMNS, REQUESTED_COUNT, SETTLED_COUNT, DEAD_LETTERS_COLUMN, CUSTOMER_COLUMN}
)
"""Columns that a file of events may lack. Figures that need a missing column are null."""
COUNT_COLUMNS: Final = (DEAD_LETTERS_COLUMN, *(f"{prefix}_records" for prefix in COLUMN_OF.values()))
DIFFERENCE_COLUMNS: Final = tuple(f"{prefix}_differ" for prefix in COLUMN_OF.values())
INTEGER_COLUMNS: Final = (
    "intended_us", "placed_us", "accepted_us", "received_us", "done_us", "shipped_us", "notified_us", "partition",
    "offset", "epoch", *COUNT_COLUMNS,
)  # fmt: skip
BOOLEAN_COLUMNS: Final = ("accepted", *DIFFERENCE_COLUMNS)
TEXT_COLUMNS: Final = ("event_id", "replica")
RUN_COLUMNS: Final = (*INTEGER_COLUMNS, *BOOLEAN_COLUMNS, *TEXT_COLUMNS)
FIGURE_COLUMNS: Final = (*INTEGER_COLUMNS, *BOOLEAN_COLUMNS, CUSTOMER_COLUMN, "replica")
"""Columns that figures are computed from."""
REQUIRED_COLUMNS: Final = ("event_id", "intended_us", "done_us")
"""Columns that each file of events must have; the first two must have a value in each row."""
VERSION_COLUMN: Final = "unknown_version"


def is_complete(place: Path) -> bool:
    """Return whether `place` is a Parquet file, or a folder with all its files."""
    return place.is_file() or (place / SUCCESS_FILE).exists()


def _parquet(source: str | Path) -> "dataset.Dataset":
    from pyarrow import dataset  # noqa: PLC0415

    system, place = _found(source)
    found = dataset.dataset(place, filesystem=system, format="parquet")
    if not found.files:
        raise ReportError("no Parquet file, or it is still being written")
    return found


def _found(source: str | Path) -> "tuple[fs.FileSystem, str]":
    from pyarrow import fs  # noqa: PLC0415

    place = str(source).removeprefix("file://")
    return fs.FileSystem.from_uri(place) if "://" in place else (fs.LocalFileSystem(), place)


@contextmanager
def _named(source: str | Path) -> Iterator[None]:
    """Raise errors that occur while reading as ReportError with the name of the source."""
    from pyarrow import ArrowException  # noqa: PLC0415

    name = source.name if isinstance(source, Path) else source
    try:
        yield
    except ReportError as wrong:
        raise ReportError(f"{name}: {wrong}") from wrong
    except FileNotFoundError as missing:
        raise ReportError(f"{name}: no such file or folder") from missing
    except (OSError, ArrowException, ValueError) as wrong:  # text that is no UTF-8 is found late
        raise ReportError(f"{name}: cannot be read ({str(wrong).splitlines()[0]})") from wrong


def count(place: Path) -> int:
    """Return the number of rows of the Parquet files at `place`. Raises ReportError if they are unreadable."""
    with _named(place):
        return int(_parquet(place).count_rows())


def row_groups(place: Path) -> list[tuple[str, int, int]]:
    """Return file, number and row count of each row group. Raises ReportError as `count` does."""
    with _named(place):
        files = _parquet(place).get_fragments()
        return [(file.path, group.id, group.num_rows) for file in files for group in file.row_groups]


def load_events(place: Path, known: frozenset[str] = OPTIONAL_COLUMNS) -> StoredRows:
    """Return the events at `place`. Raises ReportError if columns are missing or have another type.

    known: the columns of `OPTIONAL_COLUMNS` that have values.
    """

    def read(name: str) -> "pyarrow.ChunkedArray":
        with _named(place):
            return _parquet(place).to_table([name])[name]

    return StoredRows(check_events(place), read, known)


def check_events(source: str | Path, needed: Sequence[str] = RUN_COLUMNS) -> list[str]:
    """Return the columns of a file of events. Raises ReportError if one of `needed` is missing or has a wrong type."""
    from pyarrow import types  # noqa: PLC0415

    with _named(source):
        schema = _parquet(source).schema
        if missing := sorted(set(needed) - set(schema.names)):
            raise ReportError(missing_columns_error(missing))
        whole = [schema.field(name) for name in INTEGER_COLUMNS if name in schema.names]
        if others := [field for field in whole if not (types.is_integer(field.type) or types.is_null(field.type))]:
            found = ", ".join(f"{field.name} is {field.type}, not an integer" for field in others)
            raise ReportError(f"{found} (times are integer microseconds since 1970)")
        return list(schema.names)


def copy_events(source: str, to: Path) -> frozenset[str]:
    """Copy a file of events to `to`, and add the columns of a run that it lacks.

    Return the optional columns in which the source has values. The source must have `REQUIRED_COLUMNS`. If it lacks
    counts, an event has 1 request, and 1 settlement if it has `done_us`, else 0. Raises ReportError.
    """
    import pyarrow as pa  # noqa: PLC0415
    from pyarrow import compute as pc  # noqa: PLC0415
    from pyarrow import parquet as pq  # noqa: PLC0415

    names = {*check_events(source, REQUIRED_COLUMNS)} & {*FIGURE_COLUMNS, *TEXT_COLUMNS, VERSION_COLUMN}
    types = dict.fromkeys(FIGURE_COLUMNS, pa.int64()) | dict.fromkeys(BOOLEAN_COLUMNS, pa.bool_())
    types |= dict.fromkeys(TEXT_COLUMNS, pa.string())
    rows, values, versions = 0, Counter[str](), set[int]()
    with _named(source), pq.ParquetWriter(to, pa.schema(list(types.items()))) as writer:
        for batch in _parquet(source).to_batches(columns=sorted(names)):
            assumed: dict[str, Any] = dict.fromkeys(DIFFERENCE_COLUMNS, False) | dict.fromkeys(COUNT_COLUMNS, 0)
            assumed |= {REQUESTED_COUNT: 1, SETTLED_COUNT: pc.is_valid(batch["done_us"]).cast(pa.int64())}
            source_columns = {name: batch[name] if name in names else pa.nulls(len(batch)) for name in types}
            columns = {name: pc.cast(source_columns[name], kind) for name, kind in types.items()}
            columns |= {name: pc.coalesce(columns[name], value) for name, value in assumed.items()}
            writer.write_batch(pa.record_batch(columns, schema=writer.schema))
            rows += len(batch)
            values.update({name: len(batch) - batch[name].null_count for name in names})
            versions |= {*batch[VERSION_COLUMN].to_pylist()} - {None} if VERSION_COLUMN in names else set()
        if versions:
            raise ReportError(version_error(versions))
        if incomplete := [name for name in REQUIRED_COLUMNS[:2] if values[name] < rows]:
            raise ReportError(f"{rows - values[incomplete[0]]:,} of {rows:,} rows have no {incomplete[0]}")
    return frozenset(name for name in OPTIONAL_COLUMNS if values[name])


def missing_columns_error(missing: Sequence[str]) -> str:
    """Return the message for a file without required columns."""
    return f"missing columns: {', '.join(missing)}; add them, see docs/howto/report-own-events-and-spark.md"


def version_error(versions: Iterable[int]) -> str:
    """Return the message for records of unsupported schema `versions`."""
    others = ", ".join(map(str, sorted(versions)))
    return f"schema version {others}, but only {SCHEMA_VERSION} is supported; use the release that wrote the records"


def load_journal(folder: Path) -> list[JournalEntry]:
    """Return the journal of the run in `folder`; empty if it has none. Raises ReportError as `read_journal` does."""
    return read_journal(folder / JOURNAL) if is_complete(folder / JOURNAL) else []


def journal_next_to(events: str) -> str | None:
    """Return the path or URI of the journal in the folder of external events; None if there is none."""
    from pyarrow import fs  # noqa: PLC0415

    folder, slash, _ = events.rstrip("/").rpartition("/")
    journal = f"{folder}{slash}{JOURNAL}"
    with _named(journal):
        system, place = _found(journal)
        return None if system.get_file_info(place).type == fs.FileType.NotFound else journal


def read_journal(source: str | Path) -> list[JournalEntry]:
    """Return the entries of the journal in Parquet at a path or URI. Raises ReportError as `decode_entries` does."""
    with _named(source):
        found = _parquet(source)
        if missing := sorted({"position", "entry"} - set(found.schema.names)):
            raise ReportError(missing_columns_error(missing))
        rows = found.to_table(["position", "entry"])
        columns = rows["position"].cast("int64"), rows["entry"].cast("string")
        if any(column.null_count for column in columns):
            raise ReportError("a row has no position or no entry")
        return decode_entries(sorted(zip(*(column.to_pylist() for column in columns), strict=True)))


def decode_entries(rows: Sequence[tuple[int, str]]) -> list[JournalEntry]:
    """Decode records (position, text), which must be in order. Raises ReportError if one is not a journal entry."""
    decoder = JournalDecoder()
    found = []
    for position, text in rows:
        try:
            found.append(decoder.decode(text))
        except DECODE_ERRORS as broken:
            raise ReportError(f"entry {position} is not a journal entry ({broken})") from broken
    return [entry for entry in found if entry is not None]
