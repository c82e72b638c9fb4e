"""The events and the journal of a run from Parquet, on disk or elsewhere, without Spark."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np

from contracts.events import SCHEMA_VERSION
from contracts.journal import JournalDecoder, JournalEntry
from contracts.topics import Topic
from report import ReportError
from report.run_info import JOURNAL
from report.table import NONE, Ints, T, Table

if TYPE_CHECKING:
    import pyarrow
    from pyarrow import dataset, fs

MOST_IN_MEMORY: Final = 999_999
"""Events that one process counts by itself; of more, Spark hands out the rows."""
SUCCESS_FILE: Final = "_SUCCESS"
"""File that stands last in a Parquet folder."""
COLUMN_OF: Final[dict[Topic, str]] = {
    Topic.ORDERS_PLACED: "placed",
    Topic.PAYMENTS_REQUESTED: "requested",
    Topic.PAYMENTS_SETTLED: "settled",
    Topic.SHIPMENTS_SCHEDULED: "shipped",
    Topic.NOTIFICATIONS_SENT: "notified",
}
"""Topic → prefix of its columns in events.parquet: `<prefix>_records`, `<prefix>_differ`."""
CUSTOMER_COLUMN: Final = "customer_hash"
SERVED: Final = ("replica", "received_us")
"""Columns that tell who served an event; causes of lateness are told from these."""
PLACED: Final = ("partition", "offset")
ASKED, COUNTED = (f"{COLUMN_OF[topic]}_records" for topic in (Topic.PAYMENTS_REQUESTED, Topic.PAYMENTS_SETTLED))
"""Columns that tell what was asked for, done or not; and how often the topics carried an event."""
LETTERS: Final = "dead_letters"
EVERY: Final = frozenset({*SERVED, *PLACED, ASKED, COUNTED, LETTERS, CUSTOMER_COLUMN})
"""Columns that a file of events may lack. Figures that need one of them are then null."""
COUNTS: Final = (LETTERS, *(f"{prefix}_records" for prefix in COLUMN_OF.values()))
DIFFER: Final = tuple(f"{prefix}_differ" for prefix in COLUMN_OF.values())
INTEGER_COLUMNS: Final = (
    "intended_us", "placed_us", "accepted_us", "received_us", "done_us", "shipped_us", "notified_us", "partition",
    "offset", "epoch", *COUNTS,
)  # fmt: skip
BOOLEAN_COLUMNS: Final = ("accepted", *DIFFER)
TEXT_COLUMNS: Final = ("event_id", "replica")
COLUMNS: Final = (*INTEGER_COLUMNS, *BOOLEAN_COLUMNS, CUSTOMER_COLUMN, "replica")
"""Columns that figures are computed from."""
NEEDED: Final = ("event_id", "intended_us", "done_us")
"""Columns without which there can be no report; the first two are known of every event."""
VERSION: Final = "unknown_version"


class StoredRows:
    """The event rows of a run, all in memory."""

    def __init__(self, rows: "pyarrow.Table", known: frozenset[str] = EVERY) -> None:
        self.known = known & {*rows.column_names}
        self._rows = table_of(rows.column_names, rows.column)

    def pieces(self, make: Callable[[Table], T], by: str = "") -> list[T]:
        """Return what `make` finds in the rows: there is one piece, whatever is to lie together."""
        return [make(self._rows)]


def table_of(names: Sequence[str], column: "Callable[[str], pyarrow.ChunkedArray]") -> Table:
    """Return event rows as the figures read them. column: called with one of `names`, when it is needed."""
    import pyarrow as pa  # noqa: PLC0415  a tenth of a second, and only the bench extra brings it
    from pyarrow import compute  # noqa: PLC0415

    replica = compute.dictionary_encode(column("replica").cast(pa.string())).combine_chunks()
    replica = replica.combine_chunks() if isinstance(replica, pa.ChunkedArray) else replica
    labels = replica.dictionary.to_pylist()
    order = sorted(range(len(labels)), key=labels.__getitem__)
    rank = np.append(np.argsort(np.array(order, np.int64)), -1)
    numbers = rank[compute.fill_null(replica.indices, -1).to_numpy(zero_copy_only=False)]

    def read(name: str) -> Ints:
        if name not in names:
            raise KeyError(name)
        whole = compute.fill_null(compute.cast(column(name), pa.int64()), NONE)
        return np.asarray(whole.to_numpy(), np.int64)

    return Table({"replica": numbers.astype(np.int64)}, [labels[number] for number in order], read)


def is_whole(place: Path) -> bool:
    """Return whether `place` is a Parquet file, or a folder that was finished."""
    return place.is_file() or (place / SUCCESS_FILE).exists()


def _parquet(source: str | Path) -> "dataset.Dataset":
    """Return the Parquet file or folder at a path or a URI of a file system that pyarrow has."""
    from pyarrow import dataset  # noqa: PLC0415

    system, place = _found(source)
    found = dataset.dataset(place, filesystem=system, format="parquet")
    if not found.files:
        raise ReportError("no Parquet file is there, or it is still being written")
    return found


def _found(source: str | Path) -> "tuple[fs.FileSystem, str]":
    from pyarrow import fs  # noqa: PLC0415

    place = str(source).removeprefix("file://")
    return fs.FileSystem.from_uri(place) if "://" in place else (fs.LocalFileSystem(), place)


@contextmanager
def _named(source: str | Path) -> Iterator[None]:
    """Let every error begin with the name of what is read."""
    from pyarrow import ArrowException  # noqa: PLC0415

    name = source.name if isinstance(source, Path) else source
    try:
        yield
    except ReportError as wrong:
        raise ReportError(f"{name}: {wrong}") from wrong
    except FileNotFoundError as missing:
        raise ReportError(f"{name}: no such file or folder") from missing
    except (OSError, ArrowException) as wrong:
        raise ReportError(f"{name}: cannot be read ({str(wrong).splitlines()[0]})") from wrong


def count(place: Path) -> int:
    """Return how many rows lie in Parquet at `place`, by its footers. Raises ReportError where it cannot be read."""
    with _named(place):
        return int(_parquet(place).count_rows())


def row_groups(place: Path) -> list[tuple[str, int, int]]:
    """Return file, number and rows of each piece that can be read alone. Raises ReportError as `count` does."""
    with _named(place):
        files = _parquet(place).get_fragments()
        return [(file.path, group.id, group.num_rows) for file in files for group in file.row_groups]


def load_events(place: Path, known: frozenset[str] = EVERY) -> StoredRows:
    """Return the events in a run's columns at `place`. Raises ReportError where columns lack or have another type.

    known: of `EVERY`, the columns that were not filled in.
    """
    names = check_events(place)
    with _named(place):
        return StoredRows(_parquet(place).to_table([name for name in COLUMNS if name in names]), known)


def check_events(
    source: str | Path, needed: Sequence[str] = (*INTEGER_COLUMNS, *BOOLEAN_COLUMNS, *TEXT_COLUMNS)
) -> list[str]:
    """Return the columns of events. Raises ReportError where one of `needed` lacks, or numbers are not whole."""
    from pyarrow import types  # noqa: PLC0415

    with _named(source):
        schema = _parquet(source).schema
        if missing := sorted(set(needed) - set(schema.names)):
            raise ReportError(lacks(missing))
        whole = [schema.field(name) for name in INTEGER_COLUMNS if name in schema.names]
        if others := [one for one in whole if not (types.is_integer(one.type) or types.is_null(one.type))]:
            said = ", ".join(f"{one.name} is {one.type} where a whole number should be" for one in others)
            raise ReportError(f"{said} (times are whole microseconds since 1970)")
        return list(schema.names)


def copy_events(source: str, to: Path) -> frozenset[str]:
    """Copy events that lie elsewhere to `to`, in a run's columns; return those that are known and not filled in.

    Needed are the columns of `NEEDED`. An event without more counts as requested once, and as settled once if it was
    done. Raises ReportError.
    """
    import pyarrow as pa  # noqa: PLC0415
    from pyarrow import compute as pc  # noqa: PLC0415
    from pyarrow import parquet as pq  # noqa: PLC0415

    names = {*check_events(source, NEEDED)} & {*COLUMNS, *TEXT_COLUMNS, VERSION}
    types = dict.fromkeys(COLUMNS, pa.int64()) | dict.fromkeys(BOOLEAN_COLUMNS, pa.bool_())
    types |= dict.fromkeys(TEXT_COLUMNS, pa.string())
    rows, values, versions = 0, Counter[str](), set[int]()
    with _named(source), pq.ParquetWriter(to, pa.schema(list(types.items()))) as writer:
        for batch in _parquet(source).to_batches(columns=sorted(names)):
            assumed: dict[str, Any] = dict.fromkeys(DIFFER, False) | dict.fromkeys(COUNTS, 0)
            assumed |= {ASKED: 1, COUNTED: pc.is_valid(batch["done_us"]).cast(pa.int64())}
            given = {name: batch[name] if name in names else pa.nulls(len(batch)) for name in types}
            columns = {name: pc.cast(given[name], kind) for name, kind in types.items()}
            columns |= {name: pc.coalesce(columns[name], value) for name, value in assumed.items()}
            writer.write_batch(pa.record_batch(columns, schema=writer.schema))
            rows += len(batch)
            values.update({name: len(batch) - batch[name].null_count for name in names})
            versions |= {*batch[VERSION].to_pylist()} - {None} if VERSION in names else set()
        if versions:
            raise ReportError(other_version(versions))
        if short := [name for name in NEEDED[:2] if values[name] < rows]:
            raise ReportError(f"{rows - values[short[0]]:,} of {rows:,} rows have no {short[0]}")
    return frozenset(name for name in EVERY if values[name])


def lacks(missing: Sequence[str]) -> str:
    """Return what is said of a file without the columns that it must have."""
    return f"it lacks {', '.join(missing)}; is it the file of another program?"


def other_version(versions: Iterable[int]) -> str:
    """Return what is said of records of schema `versions`, which are not ours."""
    others = ", ".join(map(str, sorted(versions)))
    way = f"this report reads {SCHEMA_VERSION} only, so read each part with the release that wrote it"
    return f"records of schema version {others} beside {SCHEMA_VERSION}; {way}"


def load_journal(folder: Path) -> list[JournalEntry]:
    """Return the journal of the run in `folder`; none where it wrote none. Raises ReportError as `journal_at`."""
    return journal_at(folder / JOURNAL) if is_whole(folder / JOURNAL) else []


def journal_beside(events: str) -> str | None:
    """Return the journal in the folder of events that lie elsewhere; None where there is none."""
    from pyarrow import fs  # noqa: PLC0415

    folder, slash, _ = events.rstrip("/").rpartition("/")
    beside = f"{folder}{slash}{JOURNAL}"
    with _named(beside):
        system, place = _found(beside)
        return None if system.get_file_info(place).type == fs.FileType.NotFound else beside


def journal_at(source: str | Path) -> list[JournalEntry]:
    """Return the entries of the journal in Parquet at a path or URI. Raises ReportError as `journal_entries`."""
    with _named(source):
        found = _parquet(source)
        if missing := sorted({"position", "entry"} - set(found.schema.names)):
            raise ReportError(lacks(missing))
        rows = found.to_table(["position", "entry"])
        return journal_entries(sorted(zip(*(rows[name].to_pylist() for name in ("position", "entry")), strict=True)))


def journal_entries(rows: Sequence[tuple[int, str]]) -> list[JournalEntry]:
    """Return the entries of records, position and text of each, in order.

    Raises ReportError for what is no entry, or of another version.
    """
    unfolder = JournalDecoder()
    found = []
    for position, text in rows:
        try:
            found.append(unfolder.decode(text))
        except msgspec.DecodeError as broken:
            raise ReportError(f"entry {position} is not a journal entry ({broken})") from broken
    return [entry for entry in found if entry is not None]
