"""The journal of the autoscaler's observations, decisions and actions: entries, and the records that hold them.

A record of a tick has what changed, and none is larger than a broker takes. A whole tick is written once the changes
since the last whole one have become as large: the journal is at most twice what changes.
"""

from enum import StrEnum
from typing import Final

import msgspec

JOURNAL_VERSION: Final = 2  # 1: `problems` was `troubles`, and the action `no-change` was `hold`


class PartitionState(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One partition as a tick saw it."""

    partition: int
    arrival_rate: float
    lag: int
    owner: str | None


class PlanAlternative(msgspec.Struct, frozen=True, kw_only=True):
    """A plan that the policy weighed, the chosen one included."""

    replicas: int
    moved: int
    in_sla: float
    cost_s: float


class _Tick(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of every tick."""

    at_us: int
    tick: int
    policy: str
    action: str
    reason: str
    service_rate: float
    partitions: tuple[PartitionState, ...]
    ready_replicas: int
    requested_replicas: int
    planned_replicas: int
    epoch: int
    alternatives: tuple[PlanAlternative, ...] = ()
    missing: str | None = None
    problems: tuple[str, ...] = ()
    v: int = JOURNAL_VERSION


class TickRecord(_Tick, frozen=True, kw_only=True, tag="tick", tag_field="kind"):
    """One decision, or the reason why there was none."""


class TickChanges(_Tick, frozen=True, kw_only=True, tag="tick-changes", tag_field="kind"):
    """A TickRecord with those partitions alone that differ from the tick before."""

    since_us: int


class PlanWritten(msgspec.Struct, frozen=True, kw_only=True, tag="plan", tag_field="kind"):
    """A plan was committed to the plan topic."""

    at_us: int
    epoch: int
    action: str
    reason: str
    replicas: tuple[str, ...]
    assignment: dict[int, str] | None
    moved: int
    v: int = JOURNAL_VERSION


class ReplicaChange(StrEnum):
    """Steps in the life of a replica as its scaler saw them."""

    REQUESTED = "requested"
    STARTED = "started"
    READY = "ready"
    DRAINED = "drained"
    LEFT = "left"
    DIED = "died"
    START_FAILED = "start-failed"
    ADOPTED = "adopted"


class ReplicaChanged(msgspec.Struct, frozen=True, kw_only=True, tag="replica", tag_field="kind"):
    """A replica was requested, became ready, left, died … It costs money from REQUESTED to LEFT or DIED."""

    at_us: int
    replica: str
    change: ReplicaChange
    detail: str = ""
    v: int = JOURNAL_VERSION


class RecordPart(msgspec.Struct, frozen=True, kw_only=True, tag="piece", tag_field="kind"):
    """A part of a record that is larger than a broker takes. The others follow it at once."""

    at_us: int
    part: int
    parts: int
    text: str
    v: int = JOURNAL_VERSION


JournalEntry = TickRecord | PlanWritten | ReplicaChanged
"""An entry. `JournalEncoder` makes records of entries, `JournalDecoder` entries of records."""
JournalRecord = JournalEntry | TickChanges | RecordPart  # a record of the journal topic, and of journal.parquet

MAX_RECORD_CHARS: Final = 200_000  # 800 kB at worst; the default limit of brokers is 1 MB

_record: Final[msgspec.json.Decoder[JournalRecord]] = msgspec.json.Decoder(JournalRecord)


class JournalEncoder:
    """Makes records of entries, in their order."""

    def __init__(self) -> None:
        self._last: TickRecord | None = None
        """The last tick that saw the group; None where the next one must be whole."""
        self._whole = 0
        self._changes = 0

    def records(self, entry: JournalEntry) -> list[bytes]:
        """Return the records that say `entry`: one, or its pieces where that is too large."""
        record = self._tick(entry) if isinstance(entry, TickRecord) and entry.partitions else msgspec.json.encode(entry)
        if len(record) <= MAX_RECORD_CHARS:
            return [record]
        text, at_us = record.decode(), entry.at_us
        texts = [text[begin : begin + MAX_RECORD_CHARS] for begin in range(0, len(text), MAX_RECORD_CHARS)]
        pieces = (RecordPart(at_us=at_us, part=part, parts=len(texts), text=some) for part, some in enumerate(texts))
        return [msgspec.json.encode(piece) for piece in pieces]

    def lost(self) -> None:
        """A record has not reached the journal: the next tick tells everything again."""
        self._last = None

    def _tick(self, tick: TickRecord) -> bytes:
        last, self._last = self._last, tick
        if last is not None and len(last.partitions) == len(tick.partitions) and self._changes < self._whole:
            changed = tuple(now for now, before in zip(tick.partitions, last.partitions, strict=True) if now != before)
            said = msgspec.structs.asdict(tick) | {"partitions": changed}
            record = msgspec.json.encode(TickChanges(**said, since_us=last.at_us))
            self._changes += len(record)
        else:
            record = msgspec.json.encode(tick)
            self._whole, self._changes = len(record), 0
        return record


class JournalDecoder:
    """Makes entries of records, read in their order."""

    def __init__(self) -> None:
        self._last: TickRecord | None = None
        self._pieces: list[RecordPart] = []

    def decode(self, text: bytes | str) -> JournalEntry | None:
        """Return the entry that this record completes; None while parts of it are missing.

        A tick whose predecessor was not read has no partitions. Raises one of `contracts.validation.DECODE_ERRORS` for
        records of other kinds or versions.
        """
        record = _record.decode(text)
        if record.v == 1 and isinstance(record, _Tick):
            action = "no-change" if record.action == "hold" else record.action
            problems = msgspec.convert(msgspec.json.decode(text).get("troubles", ()), tuple[str, ...])
            record = msgspec.structs.replace(record, action=action, problems=problems, v=JOURNAL_VERSION)
        elif not 1 <= record.v <= JOURNAL_VERSION:
            raise msgspec.ValidationError(f"version {record.v} is not supported; this release reads {JOURNAL_VERSION}")
        if isinstance(record, RecordPart):
            return self._piece(record)
        record = self._whole(record) if isinstance(record, TickChanges) else record
        if isinstance(record, TickRecord) and record.partitions:
            self._last = record
        return record

    def _whole(self, changes: TickChanges) -> TickRecord:
        partitions: tuple[PartitionState, ...] = ()
        if self._last is not None and self._last.at_us == changes.since_us:
            seen = {one.partition: one for one in (*self._last.partitions, *changes.partitions)}
            partitions = tuple(seen[number] for number in sorted(seen))
        said = {name: getattr(changes, name) for name in TickRecord.__struct_fields__}
        return TickRecord(**said | {"partitions": partitions})

    def _piece(self, piece: RecordPart) -> JournalEntry | None:
        before = self._pieces if piece.part else []
        if len(before) != piece.part or any(one.at_us != piece.at_us for one in before):
            return None  # what came before it is lost
        self._pieces = [*before, piece]
        if len(self._pieces) < piece.parts:
            return None
        return self.decode("".join(one.text for one in self._pieces))
