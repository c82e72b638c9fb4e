"""Event rows and journal entries → the Parquet folders of a run, part by part."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final

import msgspec
import pyarrow as pa
from pyarrow import parquet

from bench.simulation.folder import EVENT_TYPES, EVENTS, JOURNAL, JOURNAL_TYPES, WHOLE
from contracts.journal import JournalEntry, TickRecord

EVENT_SCHEMA: Final = pa.schema(
    [(name, pa.type_for_alias(kind)) for name, kind in (EVENT_TYPES | {"customer_hash": "int64"}).items()]
)
JOURNAL_SCHEMA: Final = pa.schema([(name, pa.type_for_alias(kind)) for name, kind in JOURNAL_TYPES.items()])
ROW_GROUP: Final = 500_000


class Writers:
    """Events become one file for each part, the journal one file. Whole when it was left without an error."""

    def __init__(self, folder: Path) -> None:
        self._events = folder / EVENTS
        self._journal = folder / JOURNAL
        self._parts = 0
        self._position = 0
        self._tick = 0

    def __enter__(self) -> "Writers":
        self._events.mkdir()
        self._journal.mkdir()
        self._journal_file = parquet.ParquetWriter(self._journal / "part-00000.parquet", JOURNAL_SCHEMA)
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        self._journal_file.close()
        if kind is None:
            (self._events / WHOLE).touch()
            (self._journal / WHOLE).touch()

    def events(self, columns: Mapping[str, Any]) -> None:
        """Write one part; columns by the names of EVENT_SCHEMA."""
        arrays = [pa.array(columns[field.name], type=field.type) for field in EVENT_SCHEMA]
        file = self._events / f"part-{self._parts:05d}.parquet"
        parquet.write_table(pa.table(arrays, schema=EVENT_SCHEMA), file, row_group_size=ROW_GROUP)
        self._parts += 1

    def journal(self, entries: Iterable[JournalEntry]) -> int:
        """Append entries; return how many ticks there were so far."""
        some = list(entries)
        columns: dict[str, list[Any]] = {
            name: [getattr(entry, name, None) for entry in some] for name in JOURNAL_TYPES if name != "entry"
        }
        columns["position"] = list(range(self._position, self._position + len(some)))
        columns["kind"] = [entry.__struct_config__.tag for entry in some]
        columns["entry"] = [msgspec.json.encode(entry).decode() for entry in some]
        self._journal_file.write_table(pa.table(columns, schema=JOURNAL_SCHEMA))
        self._position += len(some)
        self._tick += sum(isinstance(entry, TickRecord) for entry in some)
        return self._tick
