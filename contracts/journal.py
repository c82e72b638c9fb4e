"""The autoscaler's journal: entries of observations, decisions and actions, and the records that encode them.

A tick's record has only the partitions that changed. The next full tick is written when the changes since the last full
tick are as large as that tick. So the journal is about twice as large as its changes, at most. Large records are split.
"""

from enum import StrEnum
from typing import Final

import msgspec

from contracts.fields import Count, Epoch, Number, Partition, Whole

JOURNAL_VERSION: Final = 2


class PartitionState(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One partition as a tick observed it."""

    partition: Partition
    arrival_rate: Number
    lag: Whole
    owner: str | None
    oldest_s: Number | None = None


class PlanAlternative(msgspec.Struct, frozen=True, kw_only=True):
    """One of the plans that the policy compared. The chosen plan is one of them."""

    replicas: Count
    moved: Count
    in_sla: Number
    cost_s: Number


class ExpectedArrivals(msgspec.Struct, frozen=True, kw_only=True):
    """Forecast of all arrivals in the next `seconds`, in events: the mean and the 10 and 90 % quantiles."""

    seconds: Number
    events: Number
    low: Number
    high: Number


class _Tick(msgspec.Struct, frozen=True, kw_only=True):
    at_us: Whole
    tick: Count
    policy: str
    action: str
    reason: str
    service_rate: Number
    partitions: tuple[PartitionState, ...]
    ready_replicas: Count
    requested_replicas: Count
    planned_replicas: Count
    epoch: Epoch
    alternatives: tuple[PlanAlternative, ...] = ()
    rails: tuple[str, ...] = ()
    uncapped: Count = 0
    missing: str | None = None
    problems: tuple[str, ...] = ()
    expected: ExpectedArrivals | None = None
    comparison: str = ""
    v: int = JOURNAL_VERSION


class TickRecord(_Tick, frozen=True, kw_only=True, tag="tick", tag_field="kind"):
    """One decision, or the reason why none was possible."""


class TickChanges(_Tick, frozen=True, kw_only=True, tag="tick-changes", tag_field="kind"):
    """A TickRecord with only the partitions that differ from the previous tick."""

    since_us: Whole


class PlanWritten(msgspec.Struct, frozen=True, kw_only=True, tag="plan", tag_field="kind"):
    """A plan was committed to the plan topic."""

    at_us: Whole
    epoch: Epoch
    action: str
    reason: str
    replicas: tuple[str, ...]
    assignment: dict[Partition, str] | None
    moved: Count
    v: int = JOURNAL_VERSION


class ReplicaChange(StrEnum):
    """Steps in the life of a replica, as its scaler observed them."""

    REQUESTED = "requested"
    STARTED = "started"
    READY = "ready"
    DRAINED = "drained"
    LEFT = "left"
    DIED = "died"
    START_FAILED = "start-failed"
    ADOPTED = "adopted"


class ReplicaChanged(msgspec.Struct, frozen=True, kw_only=True, tag="replica", tag_field="kind"):
    """A replica changed its state. A replica costs money from REQUESTED until it is LEFT or DIED."""

    at_us: Whole
    replica: str
    change: ReplicaChange
    detail: str = ""
    v: int = JOURNAL_VERSION


class RecordPart(msgspec.Struct, frozen=True, kw_only=True, tag="piece", tag_field="kind"):
    """A part of a record with more than MAX_RECORD_CHARS characters. The other parts follow directly."""

    at_us: Whole
    part: Count
    parts: Count
    text: str
    v: int = JOURNAL_VERSION


JournalEntry = TickRecord | PlanWritten | ReplicaChanged
"""One journal entry. `JournalEncoder` turns entries into records, and `JournalDecoder` turns records into entries."""
JournalRecord = JournalEntry | TickChanges | RecordPart  # a record of the journal topic, and of journal.parquet

MAX_RECORD_CHARS: Final = 200_000  # 800 kB at worst; the default limit of brokers is 1 MB

_record: Final[msgspec.json.Decoder[JournalRecord]] = msgspec.json.Decoder(JournalRecord)


class JournalEncoder:
    """Turns a sequence of entries into records."""

    def __init__(self) -> None:
        self._last: TickRecord | None = None
        """The last tick that was written. None: the next tick must be written in full."""
        self._whole = 0
        self._changes = 0

    def records(self, entry: JournalEntry) -> list[bytes]:
        """Return the record of `entry`, or its parts if it is too large."""
        record = self._tick(entry) if isinstance(entry, TickRecord) and entry.partitions else msgspec.json.encode(entry)
        if len(record) <= MAX_RECORD_CHARS:
            return [record]
        text, at_us = record.decode(), entry.at_us
        texts = [text[begin : begin + MAX_RECORD_CHARS] for begin in range(0, len(text), MAX_RECORD_CHARS)]
        parts = (RecordPart(at_us=at_us, part=n, parts=len(texts), text=part) for n, part in enumerate(texts))
        return [msgspec.json.encode(part) for part in parts]

    def lost(self) -> None:
        """Write the next tick in full, because a record did not reach the journal."""
        self._last = None

    def _tick(self, tick: TickRecord) -> bytes:
        last, self._last = self._last, msgspec.structs.replace(tick, comparison="")
        if last is not None and len(last.partitions) == len(tick.partitions) and self._changes < self._whole:
            changed = tuple(now for now, before in zip(tick.partitions, last.partitions, strict=True) if now != before)
            values = msgspec.structs.asdict(tick) | {"partitions": changed}
            record = msgspec.json.encode(TickChanges(**values, since_us=last.at_us))
            self._changes += len(record) - len(tick.comparison)  # a full tick would not have saved it
        else:
            record = msgspec.json.encode(tick)
            self._whole, self._changes = len(record) - len(tick.comparison), 0
        return record


class JournalDecoder:
    """Turns a sequence of records into entries."""

    def __init__(self) -> None:
        self._last: TickRecord | None = None
        self._parts: list[RecordPart] = []

    def decode(self, text: bytes | str) -> JournalEntry | None:
        """Return the entry that this record completes; None while parts of it are missing.

        After a lost record, ticks have no partitions until the next full tick. Raises one of validation.DECODE_ERRORS.
        """
        record = _record.decode(text)
        if record.v != JOURNAL_VERSION:
            raise msgspec.ValidationError(f"record of version {record.v}; this release reads {JOURNAL_VERSION}")
        if isinstance(record, RecordPart):
            return self._join(record)
        record = self._whole(record) if isinstance(record, TickChanges) else record
        if isinstance(record, TickRecord) and record.partitions:
            self._last = record
        return record

    def _whole(self, changes: TickChanges) -> TickRecord:
        partitions: tuple[PartitionState, ...] = ()
        if self._last is not None and self._last.at_us == changes.since_us:
            by_number = {state.partition: state for state in (*self._last.partitions, *changes.partitions)}
            partitions = tuple(by_number[number] for number in sorted(by_number))
        values = {name: getattr(changes, name) for name in TickRecord.__struct_fields__}
        return TickRecord(**values | {"partitions": partitions})

    def _join(self, part: RecordPart) -> JournalEntry | None:
        before = self._parts if part.part else []
        if len(before) != part.part or any(earlier.at_us != part.at_us for earlier in before):
            return None  # an earlier part was lost
        self._parts = [*before, part]
        return self.decode("".join(each.text for each in self._parts)) if len(self._parts) == part.parts else None
