"""Join Kafka records to one row per event: its timeline at the first completion, and its records on each topic."""

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from contracts.events import SCHEMA_VERSION
from contracts.topics import Topic
from contracts.validation import DECODE_ERRORS
from report import stored
from report.table import MAX_INT, NONE

if TYPE_CHECKING:
    import pyarrow

CONTENT_FIELDS: Final = (
    "accepted", "customer", "merchant", "country", "currency", "amount_minor", "card_token", "payment_id",
    "decline_reason", "risk_score", "shipment_id", "parcel", "carrier", "promised_on", "notification_id", "text",
)  # fmt: skip
"""Fields that must agree in all records of an event on a topic. The timeline may differ."""
COMPLETION: Final = ("done_us", "received_us", "partition", "offset", "epoch", "replica")
"""Columns that are read from the first completion."""
ABSENT: Final = dict.fromkeys(stored.DIFFERENCE_COLUMNS, False) | dict.fromkeys(stored.COUNT_COLUMNS, 0)
"""Columns of an event without records."""
EVENT_TYPES: Final = {
    **dict.fromkeys(stored.INTEGER_COLUMNS, "int64"),
    **dict.fromkeys(stored.BOOLEAN_COLUMNS, "bool"),
    **dict.fromkeys(stored.TEXT_COLUMNS, "string"),
}
"""Columns of events.parquet; a live run has also CUSTOMER_COLUMN."""
JOURNAL_TYPES: Final = {
    **{"position": "int64", "kind": "string", "at_us": "int64", "tick": "int64", "action": "string"},
    **{"reason": "string", "ready_replicas": "int64", "requested_replicas": "int64", "epoch": "int64"},
    **{"moved": "int64", "replica": "string", "change": "string", "entry": "string"},
}
"""Columns of journal.parquet: fields that are often queried, and each whole entry as JSON."""


class Record(NamedTuple):
    """A record of a topic, with the headers of its times. Unknown: None."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    stamped_us: int
    intended: bytes | None
    placed: bytes | None


class JoinedEvents:
    """The rows of events.parquet, from records in any order.

    The first completion counts: the record with the smallest `done_us` names the replica that served the event. An
    event that was never completed has the partition and offset of its request.
    """

    def __init__(self, topics: Mapping[str, Topic], refused: Mapping[str, int]) -> None:
        """topics: name on the broker → topic. refused: location of a refused record → number of its dead letters."""
        self._topics, self._refused = topics, refused
        self._rows: dict[str, dict[str, Any]] = {}

    def add(self, record: Record) -> None:
        """Add a record."""
        topic, value = self._topics[record.topic], fields_of(record.value)
        timeline = value["timeline"] if isinstance(value.get("timeline"), dict) else {}
        row = self._rows.setdefault(event_id(record, value), dict(ABSENT))
        row["dead_letters"] += self._refused.get(location(record), 0)
        times = {name: integer(timeline.get(name)) for name in ("accepted_us", "shipped_us", "notified_us")}
        for name, header in (("intended_us", record.intended), ("placed_us", record.placed)):
            known = (integer(timeline.get(name)), _number(header), record.stamped_us)
            times[name] = next(time_us for time_us in known if time_us is not None)
        for name, time_us in times.items():
            if time_us is not None:
                row[name] = min(time_us, row.get(name, time_us))
        if integer(timeline.get("done_us")) is not None:
            numbers = (integer(timeline.get(name)) for name in COMPLETION[:-1])
            first = (*(NONE if number is None else number for number in numbers), str(timeline.get("replica") or ""))
            row["first"] = min(first, row.get("first", first))
        if topic is Topic.PAYMENTS_REQUESTED:
            here = (record.partition, record.offset)
            row["requested_at"] = min(here, row.get("requested_at", here))
        _count(row, stored.COLUMN_OF[topic], value)

    def write(self, part: Path) -> set[int]:
        """Write the rows to a Parquet file; return the unsupported schema versions of records."""
        from pyarrow import parquet  # noqa: PLC0415

        for event, row in self._rows.items():
            row["event_id"] = event
            row |= dict(zip(("partition", "offset"), row.get("requested_at", ()), strict=False))
            first = zip(COMPLETION, row.get("first", ()), strict=False)
            row |= {name: value for name, value in first if value not in {NONE, ""}}
        parquet.write_table(_table([*self._rows.values()], EVENT_TYPES | {stored.CUSTOMER_COLUMN: "int64"}), part)
        return {row[stored.VERSION_COLUMN] for row in self._rows.values() if stored.VERSION_COLUMN in row}


def event_id(record: Record, value: Mapping[str, Any] | None = None) -> str:
    """Return the order id, else the key, else the location. value: fields of the record, if they are known."""
    order = (fields_of(record.value) if value is None else value).get("order_id")
    key = location(record) if record.key is None else record.key.decode(errors="replace")
    return key if order is None else str(order)


def location(record: Record) -> str:
    """Return "topic/partition/offset"."""
    return f"{record.topic}/{record.partition}/{record.offset}"


def _count(row: dict[str, Any], prefix: str, value: Mapping[str, Any]) -> None:
    """Count a record of a topic, and compare its content with that of the other records of the event there."""
    content = [value.get(name) for name in CONTENT_FIELDS]
    row[f"{prefix}_records"] += 1
    row[f"{prefix}_differ"] |= row.setdefault(prefix, content) != content
    version, customer = integer(value.get("v")), value.get("customer")
    if isinstance(value.get("accepted"), bool):
        row["accepted"] = row.get("accepted", False) or value["accepted"]
    if customer is not None:
        hashed = int.from_bytes(blake2b(str(customer).encode(), digest_size=8).digest(), signed=True)
        row[stored.CUSTOMER_COLUMN] = min(hashed, row.get(stored.CUSTOMER_COLUMN, hashed))
    if version not in {None, SCHEMA_VERSION}:
        row[stored.VERSION_COLUMN] = version


def journal_table(entries: Iterable[Record]) -> "pyarrow.Table":
    """Return the rows of journal.parquet."""
    texts = [(entry.offset, entry.value or b"") for entry in entries]
    rows = [fields_of(text) | {"position": offset, "entry": text.decode(errors="replace")} for offset, text in texts]
    return _table(rows, JOURNAL_TYPES)


def _table(rows: list[dict[str, Any]], types: Mapping[str, str]) -> "pyarrow.Table":
    import pyarrow as pa  # noqa: PLC0415  needs the bench extra

    kinds = {"int64": int, "bool": bool, "string": str}  # values of other types are unknown
    return pa.table({
        name: pa.array([row[name] if type(row.get(name)) is kinds[kind] else None for row in rows], kind)
        for name, kind in types.items()
    })  # fmt: skip


def fields_of(value: bytes | None) -> dict[str, Any]:
    """Return the fields of a JSON object; empty for everything else."""
    try:
        found = msgspec.json.decode(value or b"")
    except DECODE_ERRORS:
        return {}
    return found if isinstance(found, dict) else {}


def integer(value: object) -> int | None:
    """Return `value` if it is an integer of 64 bits, else None."""
    return value if isinstance(value, int) and not isinstance(value, bool) and NONE < value <= MAX_INT else None


def _number(header: bytes | None) -> int | None:
    digits = (header or b"").strip()
    return integer(int(digits)) if digits.isdigit() else None
