"""The vocabulary of deciding: what is known, what is wanted. Values only, frozen: nobody reasons on a changed copy."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class PartitionLoad:
    """One partition: λ in events/s over the last decision interval, and lag in events (produced − committed).

    Where one of them could not be read now, both are the worst that may be: events arrive as they last did, and none
    was served since. Plans are made for that.
    """

    partition: int
    arrival_rate: float
    lag: int
    age_s: float = 0.0
    """How old what they rest on is, in seconds; 0: all was read for this observation."""


@dataclass(frozen=True, slots=True)
class Replica:
    """A process or pod that was requested. `ready`: it serves, or could serve at once."""

    name: str
    ready: bool
    service_rate: float | None = None
    """Its own μ, events/s, as far as it is known to differ; None: as the group's."""
    silent_s: float = 0.0
    """For how long it should have said something and has not, in seconds; 0: it reports. Whether it serves is unknown
    then: at best it does, at worst nothing."""
    late: int | None = None
    """Events that it has finished later than W, as it has reported since the observation before; None: it has reported
    nothing since then, or does not count them."""

    @property
    def surely_ready(self) -> bool:
        """Whether it is known to be ready now."""
        return self.ready and not self.silent_s


BEGIN_QUANTILE: Final = 0.01
"""Share of events that may come before `RecentArrivals.begin_s`."""


@dataclass(frozen=True, slots=True, eq=False)
class RecentArrivals:
    """How the events since the observation before lay in time: a rate over the interval hides bursts."""

    slot_s: float
    """Length of a slot, seconds."""
    counts: NDArray[np.int64]
    """Events by slot and partition, shape (slots, partitions): oldest slot first, the last ends at the observation."""
    begin_s: float = 0.0
    """How long after their slots began events came at the soonest, one in a hundred left out; of bursts, the last one.
    Slots as if each were slot_s long; negative where they came before: slots need not end when it is looked."""


MAX_FULL_SLOT_SHARE: Final = 0.25
"""Share of slots that hold half as many events as the fullest; where there are more, events come evenly."""


def begin_offset_s(offsets_s: NDArray[np.float64], events: NDArray[np.int64], slots: NDArray[np.int64]) -> float:
    """Return `RecentArrivals.begin_s` of so many events at each offset from the start of their slots; 0 of none."""
    if not events.any():
        return 0.0
    held = np.bincount(slots, events, minlength=int(slots.max()) + 1)
    full = np.flatnonzero(2 * held >= held.max())
    some = slots == full[-1] if len(full) <= MAX_FULL_SLOT_SHARE * len(held) else np.ones(len(slots), np.bool_)
    order = np.flatnonzero(some)[np.argsort(offsets_s[some], kind="stable")]
    so_far = np.cumsum(events[order])
    return float(offsets_s[order[so_far.searchsorted(BEGIN_QUANTILE * so_far[-1], side="right")]])


@dataclass(frozen=True, slots=True)
class Plan:
    """Which replicas, and who owns which partition. assignment None: the group's own assignor places the partitions."""

    replicas: tuple[str, ...]
    assignment: Mapping[int, str] | None

    def __post_init__(self) -> None:
        if self.assignment is not None:
            object.__setattr__(self, "assignment", MappingProxyType(dict(self.assignment)))

    @property
    def count(self) -> int:
        """Planned number of replicas."""
        return len(self.replicas)


@dataclass(frozen=True, slots=True)
class GroupObservation:
    """All a policy may know at one tick. What is unknown is marked with its age, and is the worst that may be."""

    at_s: float
    """Seconds since some moment in the past, by a clock that nobody sets."""
    partitions: tuple[PartitionLoad, ...]
    """By partition number, every partition of the topic."""
    replicas: tuple[Replica, ...]
    """Requested and not being removed, in the order in which they were requested."""
    assignment: Mapping[int, str]
    """Partition → name of the replica that owns it now, or will once the plan in force is carried out."""
    service_rate: float
    """μ, events/s of one replica that is never idle."""
    rebalance_time_s: float
    """t_r, seconds."""
    overhead_s: float = 0.0
    """What an event's latency has beside waiting and being served: the way through the broker, seconds."""
    startup_s: float = 0.0
    """From the request of a replica until it could serve, as far as the world knows beforehand, seconds."""
    commit_age_s: float = 0.0
    """How old the commits are that lag is counted from: what was done since still counts as lag, seconds."""
    stops_all: bool = False
    """Whether a change of owners stops every partition for t_r, not just those that move."""
    recent: RecentArrivals | None = field(default=None, compare=False)
    """Where the world samples offsets between ticks; None: it does not."""
    inflow: tuple[float, ...] = ()
    """Events that the stage before this one will send in each of the coming decision intervals, in all; empty: nobody
    says."""
    late_upstream: float = 0.0
    """Events that stages before this one took for late since the tick before, of the same promise."""
    late_of_removed_replicas: Mapping[str, int] = field(default_factory=dict)
    """Replica → `Replica.late` of those that are being removed, or are gone, and have reported since the observation
    before."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "assignment", MappingProxyType(dict(self.assignment)))
        object.__setattr__(self, "late_of_removed_replicas", MappingProxyType(dict(self.late_of_removed_replicas)))

    @property
    def requested_replicas(self) -> int:
        """Number of replicas asked for and not being removed: the count that policies start from."""
        return len(self.replicas)

    @property
    def replica_names(self) -> tuple[str, ...]:
        """Names of the requested replicas, oldest request first."""
        return tuple(replica.name for replica in self.replicas)


class Action(StrEnum):
    """What a decision does."""

    UP = "up"
    DOWN = "down"
    REASSIGN = "reassign"
    HOLD = "hold"


@dataclass(frozen=True, slots=True)
class Alternative:
    """A plan that was weighed: what it was predicted to bring and to cost, as far as the policy looks ahead."""

    replicas: int
    moved: int
    in_sla: float
    """Share of the events looked at (those that wait and those that are expected) that would be in time."""
    cost_s: float
    """Replica-seconds, late events at what they are worth included; the policy takes the least it may."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What is wanted and why. On HOLD `plan` is what is in force already."""

    action: Action
    plan: Plan
    reason: str
    """One sentence with the numbers that decided, e.g. which replica exceeds which capacity."""
    alternatives: tuple[Alternative, ...] = ()
    """What was weighed, the chosen first, then by cost; empty for policies that follow a rule."""
    fault: str = ""
    """What was wrong with the policy, where this is not its own decision but of what stands in for it."""
