"""Vocabulary of decisions: observations and plans. All values are frozen, so a policy cannot change its input."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class PartitionLoad:
    """One partition: arrival rate (λ, events/s) over the last decision interval, and lag (events produced − committed).

    If an offset could not be read, both are worst-case values: arrivals continue at the last rate, and no event was
    served since the last reading. Plans are made for this case.
    """

    partition: int
    arrival_rate: float
    lag: int
    age_s: float = 0.0
    """Age of the offsets from which both are computed, seconds; 0: read for this observation."""


@dataclass(frozen=True, slots=True)
class Replica:
    """A process or pod that was requested. `ready`: it serves, or can serve at once."""

    name: str
    ready: bool
    service_rate: float | None = None
    """The replica's own μ, events/s, if it is known to differ from the group's; else None."""
    silent_s: float = 0.0
    """Seconds since the replica's last report was due; 0: it reports. Whether a silent replica still serves is
    unknown."""
    late: int | None = None
    """Events that took longer than W, as reported since the previous observation; None: it has reported nothing since
    then, or does not count them."""
    starting_s: float = 0.0
    """Time from its request until it was ready, or until now, seconds; 0: unknown."""

    @property
    def surely_ready(self) -> bool:
        """Whether the replica is ready and not silent."""
        return self.ready and not self.silent_s


BEGIN_QUANTILE: Final = 0.01
"""Share of events that arrive before `RecentArrivals.begin_s`."""


@dataclass(frozen=True, slots=True, eq=False)
class RecentArrivals:
    """Arrivals since the previous observation, by slot, because a rate over the whole interval would hide bursts."""

    slot_s: float
    """Length of a slot, seconds."""
    counts: NDArray[np.int64]
    """Events by slot and partition, shape (slots, partitions): oldest slot first, the last ends at the observation."""
    begin_s: float = 0.0
    """Offset of the 1st-percentile arrival within its slot, seconds (bursty traffic: within the slot of the latest
    burst). Negative if it arrived before, because real slots can start before multiples of slot_s."""


MAX_FULL_SLOT_SHARE: Final = 0.25
"""Traffic is bursty if at most this share of slots has at least half as many events as the fullest one."""


def begin_offset_s(offsets_s: NDArray[np.float64], events: NDArray[np.int64], slots: NDArray[np.int64]) -> float:
    """Return `RecentArrivals.begin_s` of readings: offset within the slot, events and slot of each; 0 if no events."""
    if not events.any():
        return 0.0
    by_slot = np.bincount(slots, events, minlength=int(slots.max()) + 1)
    full = np.flatnonzero(2 * by_slot >= by_slot.max())
    chosen = slots == full[-1] if len(full) <= MAX_FULL_SLOT_SHARE * len(by_slot) else np.ones(len(slots), np.bool_)
    order = np.flatnonzero(chosen)[np.argsort(offsets_s[chosen], kind="stable")]
    so_far = np.cumsum(events[order])
    return float(offsets_s[order[so_far.searchsorted(BEGIN_QUANTILE * so_far[-1], side="right")]])


@dataclass(frozen=True, slots=True)
class Plan:
    """The replicas and the owner of each partition. assignment None: the group's own assignor places the partitions."""

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
    """Input of a policy at one tick. A value that could not be read is a worst case, with its age."""

    at_s: float
    """Time of the observation by a monotonic clock, seconds."""
    partitions: tuple[PartitionLoad, ...]
    """All partitions of the topic, sorted by number."""
    replicas: tuple[Replica, ...]
    """Replicas that were requested and are not being removed, oldest request first."""
    assignment: Mapping[int, str]
    """Partition → name of its owner once the plan in force is carried out."""
    service_rate: float
    """Service rate (μ), events/s: what one replica serves if it is never idle."""
    rebalance_time_s: float
    """Rebalance time (t_r), seconds: how long a planned handover pauses a partition."""
    overhead_s: float = 0.0
    """Part of an event's latency that is neither waiting nor service, seconds. The broker and the network cause it."""
    startup_s: float = 0.0
    """Configured time from the request of a replica until it can serve, seconds; 0: unknown."""
    commit_age_s: float = 0.0
    """Age of the commits that lag is computed from, seconds. Events served since then still count as lag."""
    stops_all: bool = False
    """Whether a change of owners stops every partition for t_r, not only those that move."""
    recent: RecentArrivals | None = field(default=None, compare=False)
    """Arrivals by slot; None: offsets are not sampled between ticks."""
    inflow: tuple[float, ...] = ()
    """Total events that the previous stage will send in each of the coming decision intervals; empty: unknown."""
    late_upstream: float = 0.0
    """Events that previous stages counted as late since the previous tick, for the same SLO."""
    late_of_removed_replicas: Mapping[str, int] = field(default_factory=dict)
    """`Replica.late` of replicas that are being removed, or are gone, and have reported since the previous
    observation."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "assignment", MappingProxyType(dict(self.assignment)))
        object.__setattr__(self, "late_of_removed_replicas", MappingProxyType(dict(self.late_of_removed_replicas)))

    @property
    def requested_replicas(self) -> int:
        """Number of replicas that were requested and are not being removed: the count that policies start from."""
        return len(self.replicas)

    @property
    def replica_names(self) -> tuple[str, ...]:
        """Names of the requested replicas, oldest request first."""
        return tuple(replica.name for replica in self.replicas)


class Action(StrEnum):
    """Kind of a decision."""

    UP = "up"
    DOWN = "down"
    REASSIGN = "reassign"
    NO_CHANGE = "no-change"


class Alternative(NamedTuple):
    """A plan that was considered, with its predicted result and cost within the policy's horizon."""

    replicas: int
    moved: int
    in_sla: float
    """Predicted share of waiting and expected events that are in time."""
    cost_s: float
    """Replica-seconds, including late events at their price. The policy chooses the cheapest allowed plan."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The plan that a policy wants, and why. With the action `NO_CHANGE`, this is the plan in force."""

    action: Action
    plan: Plan
    reason: str
    """One sentence with the deciding numbers, e.g. which replica exceeds which capacity."""
    alternatives: tuple[Alternative, ...] = ()
    """Plans that were considered: the chosen one, then the others by cost; empty for policies that follow a rule."""
    fault: str = ""
    """Problem of the policy, if the fallback made this decision; else empty."""
    expected: tuple[float, float, float, float] | None = None
    """Forecast of all arrivals: span in s, then mean, 10 and 90 % quantile in events; None: the policy makes none."""
    rails: tuple[str, ...] = ()
    """Limits that changed what the policy wanted, the innermost first."""
    uncapped: int = 0
    """Replica count that the policy wanted without these limits; 0: none was binding."""
    comparison: object = field(default=None, compare=False)
    """The policy's comparison of plans, which can be repeated; None: it follows a rule."""
