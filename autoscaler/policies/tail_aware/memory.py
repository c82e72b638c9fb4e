"""State of the policy between ticks: late events, service rates, handovers, and recent peaks."""

from collections import deque
from collections.abc import Iterable, Mapping
from math import exp
from statistics import median_low
from typing import Final, NamedTuple

import numpy as np

from autoscaler.jit import Floats
from autoscaler.model import GroupObservation
from autoscaler.policies.tail_aware.arrivals import REMEMBERED

BUDGET_DECAY: Final = 0.9998
"""Factor on the weight of earlier events in the budget for each tick."""
CHEAPEST: Final = 0.25
"""Budget factor up to this share of the budget. From there it grows with the cube, to 16 at the whole budget."""
MAX_CORRECTION: Final = 0.7
"""Maximum service-rate correction (natural logarithm): half of μ."""


class Allowance(NamedTuple):
    """The state of a budget: which share of events may be late, and recent late and all events, weighted by age."""

    share: float
    late: float
    events: float

    def factor(self, more: Floats | float) -> Floats:
        """Return the budget factor once `more` events are late."""
        used = (self.late + more) / max(1.0, self.share * self.events)
        return np.asarray(np.minimum(np.maximum(used, CHEAPEST), 1.0) ** 3 / CHEAPEST**2)


class Budget:
    """The late events that the SLO allows: a share 1 − q of all events.

    Replicas report their late events. A replica that does not report counts as in the queue model.
    """

    def __init__(self, percentile: float) -> None:
        self.allowance = Allowance(max(1e-5, 1 - percentile), 0.0, 0.0)  # an SLO of 100 % counts as 99.999 %
        self._upstream = 0.0
        self._reporting: set[str] = set()
        self.reported: dict[str, float] = {}
        """Replica → late events reported since the last booking."""

    def report(self, observation: GroupObservation) -> None:
        """Add the reports of one observation, including those of replicas that leave, and late events upstream."""
        self._upstream += observation.late_upstream
        each = [(one.name, one.late) for one in observation.replicas]
        for name, late in (*each, *observation.late_of_removed_replicas.items()):
            if late is not None:
                self.reported[name] = self.reported.get(name, 0.0) + late

    def book(self, modelled: Mapping[str, float], events: float) -> float:
        """Add one interval with this number of events. Return its late events, including those upstream.

        modelled: late events by replica according to the queue model. Late events beyond the whole budget are
        forgotten, so that prices fall again: no price can undo them.
        """
        self._reporting = {*self.reported, *(self._reporting & modelled.keys())}
        silent = sum(late for name, late in modelled.items() if name not in self._reporting)
        # without a report, what starts and pauses cost is not known: in live runs, about as much again
        late = sum(self.reported.values()) + 2 * silent + self._upstream
        self.reported, self._upstream = {}, 0.0
        share, before, others = self.allowance
        others = others * BUDGET_DECAY + events
        self.allowance = Allowance(share, min(before * BUDGET_DECAY + late, share * max(1.0, others)), others)
        return late


class ServiceRateCorrection:
    """Lowers the assumed μ of a replica while it reports more late events than the queue model explains (integral)."""

    def __init__(self, allowed_share: float) -> None:
        self._allowed_share = allowed_share
        self._known: dict[str, tuple[float, float]] = {}
        """Replica → late events that the model does not explain, and correction."""

    def keep(self, replicas: Iterable[str]) -> None:
        """Forget all replicas except these."""
        self._known = {name: self._known[name] for name in replicas if name in self._known}

    def learn(self, replica: str, reported: float, explained: float, events: float) -> None:
        """Add the late events of one interval. events: arrivals at this replica."""
        excess, value = self._known.get(replica) or (0.0, self._typical)
        excess = max(0.0, 0.8 * excess + reported - explained)
        step = min(0.05, 0.2 * excess / max(1.0, events)) - self._allowed_share / 2
        self._known[replica] = excess, min(MAX_CORRECTION, max(0.0, value + step))

    def factor(self, replica: str = "") -> float:
        """Return the factor on μ of a replica; without a name, of a new one."""
        return exp(-(self._known[replica][1] if replica in self._known else self._typical))

    @property
    def _typical(self) -> float:
        return median_low(value for _, value in self._known.values()) if self._known else 0.0


class Handovers:
    """Which replica serves each partition, and when the partitions that were moved will be served again."""

    def __init__(self) -> None:
        self._serving: Mapping[int, str] = {}
        self._until_s: dict[int, float] = {}

    def begin(self, observation: GroupObservation, moved: Iterable[int]) -> None:
        """Note the partitions that a decision moves."""
        self._until_s |= dict.fromkeys(moved, observation.at_s + observation.rebalance_time_s)

    def serving(self, observation: GroupObservation) -> Mapping[int, str]:
        """Return partition → replica that serves it now: the previous owner while its owner starts."""
        ready, before = {one.name for one in observation.replicas if one.ready}, self._serving
        self._serving = observation.assignment
        if not ready.issuperset(self._serving.values()):
            self._serving = {
                partition: before[partition] if owner not in ready and before.get(partition) in ready else owner
                for partition, owner in observation.assignment.items()
            }
        return self._serving

    def remaining_s(self, observation: GroupObservation) -> Floats:
        """Return the remaining pause of each partition."""
        at_s = observation.at_s
        return np.array([max(0.0, self._until_s.get(one.partition, at_s) - at_s) for one in observation.partitions])


class RecentPeaks:
    """How many replicas to keep because the load could return before a start is over.

    An interval counts as far as the load could return to it within the time of a start. The load is assumed to change
    by at most the largest change observed in such a time. Older intervals count less. The initial count counts, too,
    because nothing better is known before arrivals have been observed.
    """

    def __init__(self) -> None:
        self._needs: deque[tuple[float, float, int]] = deque(maxlen=REMEMBERED)
        """(Time, events of the interval, replicas that it needed)."""

    def observe(self, at_s: float, events: float, count: int) -> None:
        """Add an interval. events: 0 for a count that does not depend on the load."""
        self._needs.append((at_s, events, count))

    def least(self, lead: int, keep_s: float) -> int:
        """Return the replicas to keep. lead: intervals until a new replica serves. Requires an `observe` before."""
        at_s, events, counts = np.array(self._needs).T
        known = events[events > 0]
        change = float(np.abs(known[lead:] - known[:-lead]).max(initial=0.0)) if lead < len(known) else np.inf
        share = np.minimum(1.0, (events[-1] + change) / np.maximum(events, 1e-9))
        kept = 1 - (at_s[-1] - at_s) / max(keep_s, 1e-9)
        return int(np.ceil((counts * share * kept).max() - 1e-9))
