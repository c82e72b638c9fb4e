"""Write the same files for a simulated run as for a live run: run.json, all events, and the journal.

The report reads both in the same way. Parquet folders have the columns and types of a live run.
"""

import shutil
from collections.abc import Iterable, Iterator, Mapping
from itertools import count, islice
from pathlib import Path
from typing import Any, Final

import msgspec

from autoscaler.simulator.run import Run
from autoscaler.simulator.timeline import timeline
from contracts.journal import JournalEntry, PlanWritten
from contracts.validation import InvalidSettingsError
from report.records import EVENT_TYPES, JOURNAL_TYPES
from report.run_info import EVENTS, JOURNAL, RunInfo
from report.stored import SUCCESS_FILE

BLOCK: Final = 500
"""Number of journal entries that are written at once. An entry has up to 300 kB."""


def write_run(folder: Path, run: Run, info: RunInfo) -> Path:
    """Write run.json, events and journal into `folder`, which must not contain a run; return `folder`.

    Raises InvalidSettingsError if files cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _write(folder / EVENTS, EVENT_TYPES, [timeline(run)])
        _write(folder / JOURNAL, JOURNAL_TYPES, _journal_blocks(map(before_the_start, run.entries())))
        info.save(folder)
    except OSError as error:
        why = error.strerror or error
        raise InvalidSettingsError([f"{folder}: the files of the run cannot be written: {why}"]) from error
    return folder


def _write(place: Path, types: Mapping[str, str], blocks: Iterable[Mapping[str, Any]]) -> None:
    """Write a Parquet folder. SUCCESS_FILE is written last and marks it as complete.

    blocks: column → values: a list, in which None is unknown, or an array, in which unknown values are masked.
    """
    import pyarrow  # noqa: PLC0415  only the bench extra brings it
    from pyarrow import parquet  # noqa: PLC0415

    schema = pyarrow.schema([(name, pyarrow.type_for_alias(kind)) for name, kind in types.items()])
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    try:
        with parquet.ParquetWriter(place / "part-00000.parquet", schema) as writer:
            for block in blocks:
                columns = [pyarrow.array(block[field.name], type=field.type) for field in schema]
                writer.write_table(pyarrow.table(columns, schema=schema))
        (place / SUCCESS_FILE).touch()
    except OSError:
        shutil.rmtree(place, ignore_errors=True)
        raise


def before_the_start(entry: JournalEntry) -> JournalEntry:
    """Return the entry. The first plan gets a time before second 0, as in a live run."""
    first = isinstance(entry, PlanWritten) and entry.action == "start" and entry.at_us == 0
    return msgspec.structs.replace(entry, at_us=-1) if first else entry


def _journal_blocks(entries: Iterator[JournalEntry]) -> Iterator[dict[str, list[Any]]]:
    """Yield blocks of entries as columns: fields for queries, and the whole entry as JSON."""
    position = count()
    while some := list(islice(entries, BLOCK)):
        yield {name: [getattr(entry, name, None) for entry in some] for name in JOURNAL_TYPES} | {
            "position": list(islice(position, len(some))),
            "kind": [entry.__struct_config__.tag for entry in some],
            "entry": [msgspec.json.encode(entry).decode() for entry in some],
        }
