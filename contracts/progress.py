"""What each Payment replica tells of itself, every 250 ms and at each change of state."""

from enum import StrEnum
from typing import Final

import msgspec

PROGRESS_VERSION: Final = 1
PROGRESS_INTERVAL_S: Final = 0.25


class ReplicaState(StrEnum):
    """Where a replica stands in its life."""

    WARM = "warm"
    """Connected and up to date with the plan, not a member: the plan does not name it yet."""
    MEMBER = "member"
    """In the group."""
    DRAINED = "drained"
    """Was a member, gave everything back and left the group."""
    STOPPING = "stopping"
    """About to exit."""


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
    rebalances: int
    rebalance_us: int
    """How long the last rebalance kept this replica from serving."""
    at_us: int
    v: int = PROGRESS_VERSION
