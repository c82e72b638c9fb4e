"""Invented runs with known causes of late events. Two replicas own a partition each; an event takes 5 ms."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import pyarrow as pa

from contracts.journal import PlanWritten, ReplicaChange, ReplicaChanged
from report.columns import StoredRows
from report.stored import (
    BOOLEAN_COLUMNS,
    COLUMN_OF,
    CUSTOMER_COLUMN,
    INTEGER_COLUMNS,
    OPTIONAL_COLUMNS,
    TEXT_COLUMNS,
)
from report.terms import Terms

STARTED_US: Final = 1_700_000_000_000_000
SERVICE_US: Final = 5_000
TRANSIT_US: Final = 2_000
TERMS: Final = Terms(started_us=STARTED_US, target_us=500_000, shown_s=20)


@dataclass(slots=True)
class Event:
    """One event; times in seconds since the start. Steps without a time follow at once, or after the queue."""

    at: float
    partition: int = 0
    replica: str = ""
    placed: float | None = None
    accepted: float | None = None
    received: float | None = None
    done: float | None = None
    service: float = SERVICE_US / 1e6
    epoch: int = 1
    lost: bool = False
    columns: dict[str, Any] = field(default_factory=dict)


def quiet(partition: int, until: float = 20.0, *, skip: tuple[float, float] = (0, 0)) -> list[Event]:
    """Return ten events per second that are all served without waiting."""
    times = (k / 10 + partition / 50 for k in range(int(until * 10)))
    return [Event(at, partition) for at in times if not skip[0] <= at < skip[1]]


def burst(at: float, events: int, partition: int = 0, **values: Any) -> list[Event]:
    """Return events that are all scheduled at the same time."""
    return [replace(Event(at, partition), **values) for _ in range(events)]


def rows(events: Iterable[Event]) -> list[dict[str, Any]]:
    """Return event rows. Each replica serves its events one after the other, in the order of receipt."""
    free: dict[str, float] = {}
    offsets: dict[int, int] = {}
    found = []
    for number, event in enumerate(sorted(events, key=_received)):
        replica = event.replica or f"payment-{event.partition}"
        received = _received(event)
        done = event.done if event.done is not None else max(received, free.get(replica, 0.0)) + event.service
        free[replica] = done
        offsets[event.partition] = offsets.get(event.partition, -1) + 1
        found.append(
            _row(event, number, replica=replica, received=received, done=done, offset=offsets[event.partition])
        )
    return found


def stored(rows: Iterable[Mapping[str, Any]]) -> StoredRows:
    """Return event rows in the form in which a report has them in memory."""
    copies = [dict(row) for row in rows]
    types = dict.fromkeys(TEXT_COLUMNS, pa.string()) | dict.fromkeys(INTEGER_COLUMNS, pa.int64())
    types |= dict.fromkeys(BOOLEAN_COLUMNS, pa.bool_())
    types |= {CUSTOMER_COLUMN: pa.int64()} if any(CUSTOMER_COLUMN in row for row in copies) else {}
    table = pa.Table.from_pylist(copies, pa.schema(list(types.items())))
    return StoredRows(table.column_names, table.column, OPTIONAL_COLUMNS)


def changed(at: float, replica: str, change: ReplicaChange) -> ReplicaChanged:
    """Return a journal entry."""
    return ReplicaChanged(at_us=us(at), replica=replica, change=change)


def planned(at: float, epoch: int, owners: Sequence[str]) -> PlanWritten:
    """Return a plan: owner of each partition, in order."""
    return PlanWritten(
        at_us=us(at), epoch=epoch, action="reassign", reason="", replicas=tuple(sorted(set(owners))),
        assignment=dict(enumerate(owners)), moved=1,
    )  # fmt: skip


def us(at: float) -> int:
    """Return seconds since the start as µs since 1970."""
    return STARTED_US + round(at * 1e6)


def _received(event: Event) -> float:
    handed = next(at for at in (event.accepted, event.placed, event.at) if at is not None)
    return event.received if event.received is not None else handed + TRANSIT_US / 1e6


def _row(event: Event, number: int, *, replica: str, received: float, done: float, offset: int) -> dict[str, Any]:
    row: dict[str, Any] = {f"{prefix}_records": 0 for prefix in COLUMN_OF.values()}
    row |= {f"{prefix}_differ": False for prefix in COLUMN_OF.values()}
    row |= {
        "event_id": f"event-{number:05d}",
        "intended_us": us(event.at),
        "placed_us": us(event.at if event.placed is None else event.placed),
        "accepted_us": None if event.accepted is None else us(event.accepted),
        "partition": event.partition,
        "offset": offset,
        "dead_letters": 0,
        "requested_records": 1,
    }
    if not event.lost:
        row |= {
            "received_us": us(received),
            "done_us": us(done),
            "replica": replica,
            "epoch": event.epoch,
            "accepted": True,
            "settled_records": 1,
        }
    return row | event.columns
