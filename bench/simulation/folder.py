"""A simulated run on disk, as a live one leaves its own: run.json, every event, the journal of every decision.

The report reads both alike. Parquet folders appear whole or not at all, with the columns and types that Spark writes.
"""

import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from importlib.util import find_spec
from itertools import count, islice
from pathlib import Path
from typing import Any, Final

import msgspec

from autoscaler.simulator.run import Run
from autoscaler.simulator.timeline import timeline
from contracts.journal import JournalEntry, PlanWritten
from contracts.validation import InvalidSettingsError
from report.run_info import EVENTS, JOURNAL, RUN_FILE, RunInfo
from report.stored import TEXTS, WHOLE, WHOLE_NUMBERS, YES_OR_NO

JUDGED: Final = ("result.json", "report.html")
"""What a report leaves in the folder of a run."""
BLOCK: Final = 5_000
"""Entries of the journal that are text at once: with many partitions each has kilobytes."""

EVENT_TYPES: Final = {
    **dict.fromkeys(WHOLE_NUMBERS, "int64"),
    **dict.fromkeys(YES_OR_NO, "bool"),
    **dict.fromkeys(TEXTS, "string"),
    "partition": "int32",
}
"""Columns of events.parquet."""
JOURNAL_TYPES: Final = {
    **{"position": "int64", "kind": "string", "at_us": "int64", "tick": "int64", "action": "string"},
    **{"reason": "string", "ready_replicas": "int32", "requested_replicas": "int32", "epoch": "int64"},
    **{"moved": "int32", "replica": "string", "change": "string", "entry": "string"},
}
"""Columns of journal.parquet, as `report.spark.events` makes them of the journal topic."""


def write_run(folder: Path, run: Run, info: RunInfo) -> Path:
    """Write run.json, events and journal into `folder`; return it. A simulated run in it is replaced.

    Raises InvalidSettingsError if the folder holds a live run, files cannot be written, or pyarrow is missing.
    """
    if find_spec("pyarrow") is None:
        raise InvalidSettingsError(["keeping a run takes pyarrow: pip install '.[bench]'"])
    began_us = info.started_us or 0
    try:
        _make_room(folder)
        _write(folder / EVENTS, EVENT_TYPES, [timeline(run, began_us)])
        _write(folder / JOURNAL, JOURNAL_TYPES, _journal_blocks(_entries(run, began_us)))
        info.save(folder)
    except OSError as refused:
        why = refused.strerror or refused
        raise InvalidSettingsError([f"{folder} cannot take the run's files: {why}"]) from refused
    return folder


def _make_room(folder: Path) -> None:
    """Make the folder, and remove what identifies the simulated run in it."""
    folder.mkdir(parents=True, exist_ok=True)
    with suppress(FileNotFoundError):
        try:
            world = RunInfo.load(folder).world
        except msgspec.DecodeError:
            world = "unknown"
        if world != "simulated":
            raise InvalidSettingsError([f"{folder} holds a live run; choose another folder"])
    for name in (RUN_FILE, *JUDGED):
        (folder / name).unlink(missing_ok=True)


def _write(place: Path, types: Mapping[str, str], blocks: Iterable[Mapping[str, Any]]) -> None:
    """Write a Parquet folder next to `place` and rename it, so that a reader never sees half of it.

    Values are lists with None, or arrays, masked where nothing is known.
    """
    import pyarrow  # noqa: PLC0415  only the bench extra brings it
    from pyarrow import parquet  # noqa: PLC0415

    schema = pyarrow.schema([(name, pyarrow.type_for_alias(kind)) for name, kind in types.items()])
    temporary = place.with_name(place.name + ".tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
    try:
        with parquet.ParquetWriter(temporary / "part-00000.parquet", schema) as writer:
            for block in blocks:
                columns = [pyarrow.array(block[field.name], type=field.type) for field in schema]
                writer.write_table(pyarrow.table(columns, schema=schema))
        (temporary / WHOLE).touch()
        shutil.rmtree(place, ignore_errors=True)
        place.unlink(missing_ok=True)
        temporary.rename(place)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _entries(run: Run, began_us: int) -> Iterator[JournalEntry]:
    for entry in run.entries(began_us):
        first = isinstance(entry, PlanWritten) and entry.action == "start" and entry.at_us == began_us
        yield msgspec.structs.replace(entry, at_us=began_us - 1) if first else entry


def _journal_blocks(entries: Iterator[JournalEntry]) -> Iterator[dict[str, list[Any]]]:
    """Yield some entries at a time as columns: the fields that people query, and the whole entry as JSON."""
    position = count()
    while some := list(islice(entries, BLOCK)):
        yield {name: [getattr(entry, name, None) for entry in some] for name in JOURNAL_TYPES} | {
            "position": list(islice(position, len(some))),
            "kind": [entry.__struct_config__.tag for entry in some],
            "entry": [msgspec.json.encode(entry).decode() for entry in some],
        }
