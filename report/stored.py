"""A run on disk: its description, its events and its journal from Parquet, read without Spark."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np

from contracts.journal import JOURNAL_VERSION, RECORD, JournalEntry, Unfolder
from contracts.topics import Topic
from report import ReportError
from report.run_info import EVENTS, JOURNAL, RUN_FILE, RunInfo
from report.table import NONE, Ints, Rows, T, Table

if TYPE_CHECKING:
    import pyarrow

MOST_IN_MEMORY: Final = 999_999
"""Events that one process counts by itself; of more, Spark hands out the rows."""
WHOLE: Final = "_SUCCESS"
"""File that stands last in a Parquet folder."""
COLUMN_OF: Final[dict[Topic, str]] = {
    Topic.ORDERS_PLACED: "placed",
    Topic.PAYMENTS_REQUESTED: "requested",
    Topic.PAYMENTS_SETTLED: "settled",
    Topic.SHIPMENTS_SCHEDULED: "shipped",
    Topic.NOTIFICATIONS_SENT: "notified",
}
"""Topic → prefix of its columns in events.parquet: `<prefix>_records`, `<prefix>_differ`."""
CUSTOMER: Final = "customer_hash"
SERVED: Final = ("replica", "received_us")
"""Columns that tell who served an event; causes of lateness are told from these."""
PLACED: Final = ("partition", "offset")
ASKED, COUNTED = (f"{COLUMN_OF[topic]}_records" for topic in (Topic.PAYMENTS_REQUESTED, Topic.PAYMENTS_SETTLED))
"""Columns that tell what was asked for, done or not; and how often the topics carried an event."""
LETTERS: Final = "dead_letters"
EVERY: Final = frozenset({*SERVED, *PLACED, ASKED, COUNTED, LETTERS})
WHOLE_NUMBERS: Final = (
    "intended_us", "placed_us", "accepted_us", "received_us", "done_us", "shipped_us", "notified_us", "partition",
    "offset", "epoch", LETTERS, *(f"{prefix}_records" for prefix in COLUMN_OF.values()),
)  # fmt: skip
YES_OR_NO: Final = ("accepted", *(f"{prefix}_differ" for prefix in COLUMN_OF.values()))
TEXTS: Final = ("event_id", "replica")
EARLIEST_US: Final = 946_684_800_000_000
"""The year 2000: what was intended before has another unit, or another clock."""
LONGEST_DAYS: Final = 40
"""A series has an entry for each second."""


@dataclass(frozen=True, slots=True)
class Promise:
    """What was promised of events of which no run.json tells it."""

    latency_target_s: float
    percentile: float
    """The share that is to be done within it."""


class Stored:
    """The event rows of a run, all in memory."""

    def __init__(self, rows: "pyarrow.Table", known: frozenset[str] = EVERY) -> None:
        self.known, self.customers = known, CUSTOMER in rows.column_names
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


def load_run(folder: Path) -> RunInfo:
    """Read folder/run.json. Raises ReportError when it is missing or not whole."""
    try:
        return RunInfo.load(folder)
    except OSError as missing:
        said = f"{missing.strerror}; name the folder of a run, as `out/NAME`"
        raise ReportError(f"{folder / RUN_FILE}: {said}") from missing
    except msgspec.DecodeError as broken:
        raise ReportError(f"{folder / RUN_FILE}: not a run's description ({broken})") from broken


def unknown_run(name: str, source: str, promise: Promise) -> RunInfo:
    """Return the description of a run that nobody described. Raises ReportError for a promise that is none."""
    target_s, share = promise.latency_target_s, promise.percentile
    if not (0 < target_s < math.inf and 0 < share <= 1):
        what = "a latency target is more than 0 seconds, a percentile a share of 1, as 0.999"
        raise ReportError(f"{share:g} within {target_s:g} s was never promised: {what}")
    return RunInfo(
        run=name, scenario={"name": source}, policy="unknown", seed=0, topology="payment-only", world="unknown",
        bootstrap_servers="", client_properties="", payment_partitions=0,
        latency_target_s=target_s, percentile=share, duration_s=0.0,
    )  # fmt: skip


def bounded(run: RunInfo, rows: Rows, *, now_us: int) -> RunInfo:
    """Give `run` the start (whole second) and the duration that its events have; those of the future aside.

    Raises ReportError when no event has a time that can be, or they lie too far apart.
    """
    ends = [one for one in rows.pieces(partial(_ends, now_us=now_us)) if one]
    if not ends:
        raise ReportError("no event was intended between 2000 and now; are its times microseconds since 1970, UTC?")
    started_us = min(first for first, _ in ends) // 1_000_000 * 1_000_000
    duration_s = (max(last for _, last in ends) - started_us) // 1_000_000 + 1
    if duration_s > LONGEST_DAYS * 86_400:
        most = f"a report is of {LONGEST_DAYS} at most"
        raise ReportError(f"its events lie {duration_s / 86_400:,.0f} days apart; {most}")
    return msgspec.structs.replace(run, started_us=started_us, duration_s=float(duration_s))


def _ends(events: Table, now_us: int) -> tuple[int, int] | None:
    intended_us = events["intended_us"]
    can_be = intended_us[(intended_us >= EARLIEST_US) & (intended_us <= now_us)]
    return (int(can_be.min()), int(can_be.max())) if len(can_be) else None


def is_whole(place: Path) -> bool:
    """Return whether `place` is a Parquet file, or a folder that was finished."""
    return place.is_file() or (place / WHOLE).exists()


def parts(place: Path) -> list[Path]:
    """Return the files of a Parquet folder, or the file itself."""
    return [place] if place.is_file() else sorted(place.glob("[!._]*.parquet"))


def count(place: Path) -> int:
    """Return how many rows lie in Parquet at `place`, by its footers. Raises ReportError where it cannot be read."""
    return sum(rows for _, _, rows in row_groups(place))


def row_groups(place: Path) -> list[tuple[Path, int, int]]:
    """Return file, number and rows of each piece that can be read alone. Raises ReportError as `count` does."""
    from pyarrow import parquet  # noqa: PLC0415

    found = []
    with _read(place.name):
        for part in parts(place):
            meta = parquet.read_metadata(part)
            found += [(part, group, meta.row_group(group).num_rows) for group in range(meta.num_row_groups)]
    return found


@contextmanager
def _read(name: str) -> Iterator[None]:
    from pyarrow import ArrowException  # noqa: PLC0415

    try:
        yield
    except ReportError as wrong:
        raise ReportError(f"{name}: {wrong}") from wrong
    except (OSError, IndexError, ArrowException) as wrong:
        why = "nothing is there" if isinstance(wrong, IndexError) else str(wrong).splitlines()[0]
        raise ReportError(f"{name}: cannot be read ({why})") from wrong


def stored_events(folder: Path) -> Stored:
    """Return the events of the run in `folder`. Raises ReportError where columns lack or have another type."""
    import pyarrow as pa  # noqa: PLC0415
    from pyarrow import parquet  # noqa: PLC0415

    place, columns = folder / EVENTS, check_columns(folder)
    wanted = [name for name in (*WHOLE_NUMBERS, *YES_OR_NO, CUSTOMER, "replica") if name in columns]
    with _read(EVENTS):
        return Stored(pa.concat_tables([parquet.read_table(part, columns=wanted) for part in parts(place)]))


def check_columns(folder: Path) -> list[str]:
    """Return the columns of the run's events. Raises ReportError where one lacks, or holds no whole numbers."""
    from pyarrow import parquet, types  # noqa: PLC0415

    with _read(EVENTS):
        schema = parquet.read_schema(parts(folder / EVENTS)[0])
    every = (*WHOLE_NUMBERS, *YES_OR_NO, *TEXTS)
    if missing := sorted(set(every) - set(schema.names)):
        raise ReportError(f"{EVENTS}: {lacks(missing)}")
    whole = (schema.field(name) for name in WHOLE_NUMBERS)
    if others := [one for one in whole if not (types.is_integer(one.type) or types.is_null(one.type))]:
        said = ", ".join(f"{one.name} is {one.type} where a whole number should be" for one in others)
        raise ReportError(f"{EVENTS}: {said} (times are whole microseconds since 1970)")
    return list(schema.names)


def lacks(missing: Sequence[str]) -> str:
    """Return what is said of a file without the columns that it must have."""
    return f"it lacks {', '.join(missing)}; is it the file of another program?"


def stored_journal(folder: Path) -> list[JournalEntry]:
    """Return the journal of the run in `folder`; none where it wrote none. Raises ReportError as `journal_entries`."""
    from pyarrow import parquet  # noqa: PLC0415

    if not is_whole(folder / JOURNAL):
        return []
    with _read(JOURNAL):
        rows: list[tuple[int, str]] = []
        for part in parts(folder / JOURNAL):
            columns = set(parquet.read_schema(part).names)
            if missing := sorted({"position", "entry"} - columns):
                raise ReportError(lacks(missing))
            table = parquet.read_table(part, columns=["position", "entry"])
            rows += zip(table["position"].to_pylist(), table["entry"].to_pylist(), strict=True)
        return journal_entries(sorted(rows))


def journal_entries(rows: Sequence[tuple[int, str]]) -> list[JournalEntry]:
    """Return the entries of records, position and text of each, in order.

    Raises ReportError for what is no entry, or of another version.
    """
    unfolder = Unfolder()
    found = []
    for position, text in rows:
        try:
            record = RECORD.decode(text)
            if record.v != JOURNAL_VERSION:
                raise ReportError(f"entry {position} has version {record.v}, this report reads {JOURNAL_VERSION}")
            found.append(unfolder.entry(record))
        except msgspec.DecodeError as broken:
            raise ReportError(f"entry {position} is not a journal entry ({broken})") from broken
    return [entry for entry in found if entry is not None]
