"""What the autoscaler saw, decided and did: a tagged union."""

from enum import StrEnum
from typing import Final

import msgspec

JOURNAL_VERSION: Final = 1


class PartitionSeen(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One partition as a tick saw it."""

    partition: int
    arrival_rate: float
    """Events/s over the last decision interval."""
    lag: int
    """Events produced and not committed."""
    owner: str | None


class AlternativeWeighed(msgspec.Struct, frozen=True, kw_only=True):
    """A plan that the policy weighed, the chosen one included."""

    replicas: int
    moved: int
    """Partitions that it would move."""
    in_sla: float
    """Predicted share of events in time."""
    cost_s: float
    """Predicted replica-seconds, late events at their price included."""


class _Tick(msgspec.Struct, frozen=True, kw_only=True):
    """What every tick says."""

    at_us: int
    tick: int
    policy: str
    action: str
    """up, down, reassign or hold."""
    reason: str
    service_rate: float
    """Events/s of one replica, as learned."""
    partitions: tuple[PartitionSeen, ...]
    """Empty where not all could be observed."""
    ready_replicas: int
    requested_replicas: int
    planned_replicas: int
    """What the decision wants; differs from requested until the group has acted."""
    epoch: int
    """Plan in force."""
    alternatives: tuple[AlternativeWeighed, ...] = ()
    """The chosen plan first, then the others by cost; empty for policies that follow a rule."""
    missing: str | None = None
    """What could not be observed, on a hold for want of data."""
    troubles: tuple[str, ...] = ()
    """What is wrong with the autoscaler now, a sentence each: its policy fails, replicas are silent …"""
    v: int = JOURNAL_VERSION


class TickRecord(_Tick, frozen=True, kw_only=True, tag="tick", tag_field="kind"):
    """One decision, or the reason why there was none."""


class TickChanges(_Tick, frozen=True, kw_only=True, tag="tick-changes", tag_field="kind"):
    """A TickRecord with those partitions alone that differ from the tick before."""

    since_us: int
    """`at_us` of that tick."""


class PlanWritten(msgspec.Struct, frozen=True, kw_only=True, tag="plan", tag_field="kind"):
    """A plan was committed to the plan topic."""

    at_us: int
    epoch: int
    action: str
    reason: str
    replicas: tuple[str, ...]
    assignment: dict[int, str] | None
    moved: int
    """Partitions whose owner differs from the plan before."""
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
    """Exit status, why a start failed, when it is tried again."""
    v: int = JOURNAL_VERSION


class Piece(msgspec.Struct, frozen=True, kw_only=True, tag="piece", tag_field="kind"):
    """A part of a record that is larger than a broker takes. The others follow it at once."""

    at_us: int
    """The record's."""
    part: int
    """From 0."""
    parts: int
    text: str
    """The record as JSON, cut; all texts together are whole."""
    v: int = JOURNAL_VERSION


JournalEntry = TickRecord | PlanWritten | ReplicaChanged
"""What there is to know. `contracts.journal_records` makes records of it, and it of records."""
JournalRecord = JournalEntry | TickChanges | Piece
"""What stands in the journal topic, and in journal.parquet."""
