"""Write the same files for a simulated run as for a live run: run.json, all events, and the journal.

The report reads both in the same way. Parquet folders have the columns and types of a live run.
"""

import shutil
from collections.abc import Iterable, Iterator, Mapping
from itertools import count, islice
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from autoscaler.simulator.run import Run
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


def timeline(run: Run) -> dict[str, NDArray[Any]]:
    """Return column → values by event number, as in events.parquet of live runs. Second 0 is at 0 µs.

    Columns of stages that a simulated run does not have are fully masked. Raises ValueError for a run whose events were
    not kept.
    """
    events = run.events
    count = len(events)
    if count != len(run.latency_us):
        raise ValueError("this run kept latencies only: its events have no timeline")
    never, none = np.ma.array(np.zeros(count, np.int64), mask=True), np.zeros(count, np.int64)
    written_us = np.array([plan.at_us for plan in run.plans])
    columns: dict[str, NDArray[Any]] = {
        "event_id": np.char.mod("event-%08d", np.arange(count)),
        "intended_us": events.intended_us,
        "placed_us": events.intended_us,  # a simulated generator is never late
        "accepted_us": never,
        "received_us": events.started_us,
        "done_us": events.done_us,
        "shipped_us": never,
        "notified_us": never,
        "partition": events.partition,
        "offset": _offsets(events.partition),
        "replica": np.array(run.replica_names)[events.replica],
        "epoch": np.searchsorted(written_us, events.started_us, side="right"),
        "accepted": np.ones(count, bool),
        "dead_letters": none,
    }
    once = np.ones(count, np.int64)
    carried = {"placed": none, "requested": once, "settled": once, "shipped": none, "notified": none}
    for prefix, records in carried.items():
        columns |= {f"{prefix}_records": records, f"{prefix}_differ": np.zeros(count, bool)}
    return columns


def _offsets(partition: NDArray[np.int32]) -> NDArray[np.int64]:
    order = np.argsort(partition, kind="stable")
    counts = np.bincount(partition)
    offsets = np.empty(len(partition), np.int64)
    offsets[order] = np.arange(len(partition)) - np.repeat(np.cumsum(counts) - counts, counts)
    return offsets
