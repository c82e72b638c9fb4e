"""Inputs and results of the comparison of plans: the present situation, the horizon, and plans with predictions."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, inf
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
ROUNDING: Final = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Situation:
    """Inputs of the comparison of plans. Partitions and replicas are indexes; replicas in the order of requests."""

    arrived: float
    """Events of the last interval."""
    waiting: Floats
    """Events that wait, by age and partition, shape (slots, partitions), the newest slot last."""
    expected: Floats
    """Events that will arrive in each arrival scenario, shape (scenarios, slots, partitions)."""
    chances: Floats
    """Probability of each scenario."""
    surprises: Floats
    """The same for forecast errors (more events than expected), shape (surprises, slots, partitions)."""
    surprise_chances: Floats
    """Probability of each forecast error."""
    headroom: Floats
    """Events of each forecast error as a multiple of the expected ones, shape (surprises,)."""
    saved_s: float
    """Events that are due later can still be saved by a change after the next tick, if they are a forecast error."""
    paid_s: float
    """Time for which the replicas of a plan are paid in the comparison."""
    variance: Floats
    """Variance of the events of one interval, by partition."""
    sizes: Floats
    """Events of one interval to plan for, by partition."""
    owners: Ints
    """Replica of each partition, −1 for none."""
    serving: Ints
    """Replica that serves each partition until its owner has started, −1 for none."""
    starting_s: Floats
    """Time until each replica has started, within the horizon; 0: it has."""
    in_handover_s: Floats
    """How long the partition's handover still takes; 0: it is served."""
    rates: Floats
    """μ of each replica, events/s."""
    numbered_rates: Floats
    """The same, and of all that could be new, by their numbers."""
    typical_rate: float
    """μ of a replica that is new, events/s."""
    capacity: float
    """Events per interval, as they may lie, that a typical replica serves in time, interval after interval."""
    limit: float
    """Events/s that all replicas together can serve; inf: no known limit."""
    slot_s: float
    begin_s: float
    """From the start of a slot until its events come."""
    target_s: float
    """W less what is lost to anything but waiting and serving."""
    pause_s: float
    stops_all: bool
    """All partitions pause when one moves."""
    start_s: float
    """Until a replica that is asked for now can serve: so far into `expected` the present owners do."""
    late_price_s: float
    """Replica-seconds that keeping one event in time is worth while there is budget."""
    scarcity: Callable[[float], float]
    """Price multiplier after so many further late events."""
    start_price_s: float
    """Replica-seconds that starting a replica costs."""
    move_price_s: float
    """Replica-seconds that moving a partition costs, beside the events that it makes late."""

    tail_slots: int
    """Slots of the last interval within the horizon."""

    @property
    def most_useful(self) -> int:
        """Number of replicas that serve what the limit allows; more would not help."""
        return max(1, ceil(min(self.limit / self.typical_rate, len(self.owners)) - ROUNDING))

    def new(self, count: int) -> range:
        """Return the numbers of so many new replicas; at most as many as there are partitions."""
        return range(len(self.rates), len(self.rates) + min(count, len(self.owners)))

    def rates_up_to(self, replica: int) -> Floats:
        """Return μ by number of replica, new ones included, to at least that number."""
        return self.numbered_rates[: max(len(self.rates), replica + 1)]

    def rates_under(self, replicas: Sequence[int]) -> Floats:
        """Return the same where these share the limit."""
        rates = self.rates_up_to(max(replicas, default=-1))
        if self.limit == inf:
            return rates
        return rates * min(1.0, self.limit / max(ROUNDING, float(rates[list(replicas)].sum())))


@dataclass(frozen=True, slots=True, eq=False)
class Proposal:
    """A plan that could follow."""

    owners: Ints
    replicas: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Candidate(Proposal):
    """A proposal with its prediction. cost: replica-seconds, late events at their price included."""

    late: float
    """Events expected to be late, of those that wait and those that are looked ahead to."""
    lasts: bool
    """No replica has more to do than it can do, interval after interval; otherwise the plan lives on the slack of W."""
    moved: int
    cost: float


@dataclass(frozen=True, slots=True)
class Horizon:
    """Times in s from now. A horizon with too many intervals omits some in the middle."""

    intervals: tuple[int, ...]
    """Numbers of the decision intervals within the horizon; 1 is the next one."""
    until_s: float
    """End of the horizon."""
    near_s: float
    """Time until which a plan is paid for. The later part, which shows the effect of a start, is not: a start one
    interval later is early enough for the interval after."""
    whole_s: float
    """Time until which no interval is omitted."""
    start_s: float
    """Time from which a replica that is requested now serves; 0: at once."""

    startup_s: float

    def seen_s(self, from_now_s: Floats) -> Floats:
        """Return times from now as times within the horizon."""
        later = np.maximum(self.whole_s, from_now_s - (self.startup_s - self.start_s))
        return np.where(from_now_s <= self.whole_s, from_now_s, later)


def horizon(*, interval_s: float, reach_s: float, startup_s: float, most: int) -> Horizon:
    """Return the horizon of a decision.

    reach_s: time until present queues and handovers are settled. startup_s: the benefit of a start shows in the
    interval after it, which a start one interval later would miss. most: maximum number of intervals, without the
    nearest and the last two.
    """
    near = max(1, ceil(reach_s / interval_s - ROUNDING))
    last = ceil((startup_s + interval_s) / interval_s - ROUNDING) if startup_s > 0 else 0
    whole = max(near, min(most, last))
    intervals = (*range(1, whole + 1), *range(max(whole + 1, last - 1), last + 1))
    start_s = max(0.0, startup_s - (max(near, last) - len(intervals)) * interval_s)
    near_s = near * interval_s
    until_s = max(near_s, start_s + interval_s if startup_s > 0 else 0.0)
    return Horizon(intervals, until_s, near_s, whole * interval_s, start_s, startup_s)
