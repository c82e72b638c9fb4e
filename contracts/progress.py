"""What each Payment replica tells of itself, every 250 ms and at each change of state."""

from enum import StrEnum
from typing import Final

import msgspec

PROGRESS_VERSION: Final = 1
PROGRESS_INTERVAL_S: Final = 0.25
LATENCY_BOUNDS: Final = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0)
"""Of `Progress.latencies`, as multiples of W."""
IN_TIME: Final = LATENCY_BOUNDS.index(1.0) + 1
"""So many of its counts are of events that were done within W."""


class ReplicaState(StrEnum):
    """Where a replica stands in its life."""

    WARM = "warm"
    """Connected and up to date with the plan, owning nothing: the plan does not name it yet."""
    MEMBER = "member"
    """In the group, with what the plan gives it."""
    DRAINING = "draining"
    """Asks to be drained: it was told to stop, and serves until others have taken its partitions."""
    DRAINED = "drained"
    """Was a member, gave everything back and left the group."""
    STOPPING = "stopping"
    """About to exit."""


class RoundKind(StrEnum):
    """Why the group rebalanced."""

    PLAN = "plan"
    """A new plan."""
    DEATH = "death"
    """A plan that evicts a dead member."""
    MEMBERSHIP = "membership"
    """A member came, left or was lost, and no plan said so."""


class Round(msgspec.Struct, frozen=True, kw_only=True):
    """One rebalance that gave this replica partitions or took some away, as this replica saw it."""

    generation: int
    epoch: int
    """Plan epoch that the assignment was made from; 0 without a plan."""
    kind: RoundKind
    members: int
    """Members of the group."""
    moved: int
    """Partitions of the whole group that were granted to another replica than their last owner."""
    taken: int
    """Partitions that this replica took over."""
    released: int
    """Partitions that this replica gave up."""
    pause_us: int
    """Longest time that a partition taken here was served by nobody: from the moment its last owner stopped serving it
    until this replica could start. 0: nothing was taken, or nobody said when it was given up (a crash)."""
    plan_us: int
    """From the moment the plan was written until this round was complete; 0 without a plan."""
    at_us: int
    """When it was complete."""


class ServiceTimes(msgspec.Struct, frozen=True, kw_only=True):
    """How long events took to handle since the report before (µs); all 0 when none was handled."""

    events: int = 0
    mean_us: int = 0
    max_us: int = 0


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """Value of the progress topic; key: replica. Counters grow over one incarnation and start again with the next."""

    replica: str
    incarnation: str
    """New with every start of the process."""
    pid: int
    member_id: str
    """The group's id of this member; empty when not a member."""
    generation: int
    """Generation of the group; -1 when not a member."""
    epoch: int
    """Newest plan epoch that this replica has read; 0 without a plan."""
    assigned_epoch: int
    """Plan epoch that the present assignment was made from; 0 without a plan."""
    state: ReplicaState
    partitions: tuple[int, ...]
    positions: dict[int, int]
    """Partition → next offset to serve, for the partitions owned."""
    processed: int
    """Events served."""
    busy_us: int
    """Time spent serving them, waiting for input left out."""
    late: int | None = None
    """Events that were done more than W after they had been fetched, by its own clock alone; None: not counted."""
    latencies: tuple[int, ...] = ()
    """Events by what they took from their fetch on: up to each of LATENCY_BOUNDS · W, and beyond the last; empty: not
    counted. `late` is the sum of those after the first IN_TIME."""
    rebalances: int
    """Rounds it took part in."""
    at_us: int
    service: ServiceTimes = ServiceTimes()
    rounds: tuple[Round, ...] = ()
    """Rounds since the report before that changed what this replica owns, oldest first."""
    unwell: tuple[str, ...] = ()
    """The first reasons why the replica is not well, one sentence each: a partition is cut off, its lease is out."""
    host: str = ""
    """Name of the host it runs on: the short id of its container, the name of its pod. Empty: it did not say."""
    pages: str = ""
    """HOST:PORT of its `/healthz` and `/metrics`; empty where it has none."""
    v: int = PROGRESS_VERSION
