"""Runs on disk, whose reports need no Kafka."""

import json
from pathlib import Path
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from published_runs import made_up_run, run_info

from contracts.connection import Connection
from contracts.topics import Topic
from report.run_info import JOURNAL
from report.stored import COLUMN_OF

STARTED_US: Final = 1_700_000_000_000_000
EVENTS: Final = 200
"""Four seconds of 50 events/s."""


def event_rows(**changes: Any) -> list[dict[str, Any]]:
    """Return the rows of events.parquet. changes: fields of event 7."""
    run = made_up_run(EVENTS, 50.0, STARTED_US, 1)
    rows: list[dict[str, Any]] = [
        json.loads(msgspec.json.encode(run.timeline(k, Topic.PAYMENTS_SETTLED))) for k in range(EVENTS)
    ]
    for k, row in enumerate(rows):
        row |= {f"{prefix}_records": int(prefix in {"requested", "settled"}) for prefix in COLUMN_OF.values()}
        row |= {f"{prefix}_differ": False for prefix in COLUMN_OF.values()}
        row |= {"event_id": f"o-{k}", "accepted": True, "dead_letters": 0}
        row |= {"accepted_us": None, "shipped_us": None, "notified_us": None}
    rows[7] |= changes
    return rows


def stored_run(folder: Path, *, journal_entries: tuple[bytes, ...] | None = None, **changes: Any) -> None:
    """Create the folder of a run with events, and with a journal if there are entries."""
    run = made_up_run(EVENTS, 50.0, STARTED_US, 1)
    info = run_info(Connection(bootstrap_servers="127.0.0.1:1", namespace="stored"), run, pipeline=False)
    info.save(folder)
    write_parquet(folder / "events.parquet", event_rows(**changes))
    if journal_entries is not None:
        table = pa.table({"position": range(len(journal_entries)), "entry": [e.decode() for e in journal_entries]})
        (folder / JOURNAL).mkdir()
        pq.write_table(table, folder / JOURNAL / "part-0.parquet")
        (folder / JOURNAL / "_SUCCESS").touch()


def write_parquet(place: Path, rows: list[dict[str, Any]]) -> None:
    """Write `rows` as one Parquet file. pyarrow chooses the types."""
    pq.write_table(pa.Table.from_pylist(rows), place)
