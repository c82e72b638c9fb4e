"""A replica writes a progress report every 250 ms and at each change of state. Fields: docs/reference/records.md."""

from enum import StrEnum
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from contracts.fields import Count, Counts, Epoch, Generation, Moment, Name, Offset, Partition, Partitions, Text, Texts

PROGRESS_VERSION: Final = 2
PROGRESS_INTERVAL_S: Final = 0.25
LATENCY_BOUNDS: Final = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0)  # bounds of `Progress.latencies`, in multiples of W
COUNTS_WITHIN_TARGET: Final = LATENCY_BOUNDS.index(1.0) + 1  # buckets of `latencies` with events done within W


class ReplicaState(StrEnum):
    """State of a replica."""

    WARM = "warm"  # connected and up to date with the plan, which does not name it yet: owns nothing
    MEMBER = "member"  # in the group, with the partitions that the plan gives it
    DRAINING = "draining"  # got a stop signal; serves until others have taken its partitions
    DRAINED = "drained"  # released all its partitions and left the group
    STOPPING = "stopping"  # about to exit


class RebalanceKind(StrEnum):
    """Cause of a rebalance."""

    PLAN = "plan"  # a new plan
    DEATH = "death"  # a plan that evicts a dead member
    MEMBERSHIP = "membership"  # a member joined, left or was lost without a plan


class Rebalance(msgspec.Struct, frozen=True, kw_only=True):
    """One rebalance that changed the partitions of this replica, as this replica observed it."""

    generation: Generation
    epoch: Epoch
    kind: RebalanceKind
    members: Count
    moved: Count
    taken: Count
    released: Count
    pause_us: Moment
    at_us: Moment


MAX_REBALANCES: Final = 1000
Rebalances = Annotated[tuple[Rebalance, ...], Meta(max_length=MAX_REBALANCES)]


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """Value of the progress topic, with the replica as key. Counters start at 0 in each incarnation."""

    replica: Name
    incarnation: Text
    pid: Count
    member_id: Text
    generation: Generation
    epoch: Epoch
    assigned_epoch: Epoch
    state: ReplicaState
    partitions: Partitions
    positions: dict[Partition, Offset]
    skipped: dict[Partition, Count] = {}
    processed: Count
    busy_us: Moment
    late: Count | None = None
    latencies: Counts = ()
    rebalances: Count
    at_us: Moment
    recent_rebalances: Rebalances = ()
    problems: Texts = ()
    host: Text = ""
    pages: Text = ""
    group: Text = ""
    v: int = PROGRESS_VERSION


decode_progress: Final = msgspec.json.Decoder(Progress).decode
"""Decodes a report. Raises one of `contracts.validation.DECODE_ERRORS`."""
