"""State of the policy between ticks: late events, stops that were undone, handovers."""

from collections import deque
from collections.abc import Collection, Iterable, Mapping
from math import exp
from statistics import median_low
from typing import Final

import numpy as np
from numpy.typing import NDArray

from autoscaler.model import GroupObservation
from autoscaler.policies.tail_aware.prediction import late_already, late_for_certain
from autoscaler.policies.tail_aware.situation import Candidate, Floats, Situation

SCARCEST: Final = 16.0
"""Maximum price multiplier of a late event: no price for later events can recover a budget that is far overspent."""
CHEAPEST: Final = 0.25
"""Minimum price multiplier: an unspent budget is lost."""
LEAST_SHARE: Final = 1e-5
"""Minimum allowed share of late events: an SLO of 100 % counts as 99.999 %."""
BUDGET_DECAY_PER_TICK: Final = 0.9998
"""Decay of the counted events: about 90 minutes count at one tick per second."""
SMOOTHED: Final = 0.8
"""Weight of the previous unexplained share, per tick: reports are slightly older than offsets."""
GAIN: Final = 1.0
"""Correction per share of late events without an explanation: 1.2 % for 12 s give 15 %."""
MOST_AT_ONCE: Final = 0.05
"""Maximum share per interval: one bad second is no proof."""
MAX_CORRECTION: Final = 0.7
"""Maximum correction, half of μ: service times show greater differences."""
FLAPPING_S: Final = 10.0
"""Time after a stop within which a start counts as flapping."""
FIRST_S: Final = 1.0
"""Scale-down delay after the first flapping; each further one doubles it."""
FORGIVEN_S: Final = 120.0
"""Time without flapping after which the delay is halved."""


class Budget:
    """The late events that the SLO allows, 1 − q of all. The fewer are left, the higher is the price of one."""

    def __init__(self, percentile: float) -> None:
        self.allowed_share = max(LEAST_SHARE, 1 - percentile)
        self._late = 0.0
        self._events = 0.0

    def book(self, late: float, events: float) -> None:
        """Add what one interval brought."""
        self._late = self._late * BUDGET_DECAY_PER_TICK + late
        self._events = self._events * BUDGET_DECAY_PER_TICK + events

    def scarcity(self, more: float = 0.0) -> float:
        """Return what a late event is worth, in prices, once `more` of them have been spent.

        1 where that is half of what is allowed; it grows with the third power, between CHEAPEST and SCARCEST.
        """
        allowed = max(1.0, self.allowed_share * self._events)
        return float(min(SCARCEST, max(CHEAPEST, (2 * (self._late + more) / allowed) ** 3)))


class ServiceRateCorrection:
    """How much slower replicas are than is believed of them, by events that were late and should not have been.

    An integral for each: it grows by what is reported beyond what a replay of the interval explains, and fades as far
    as half of what may be late would pay for it.
    """

    def __init__(self, allowed_share: float) -> None:
        self._allowed_share = allowed_share
        self._excess: dict[str, float] = {}
        self._values: dict[str, float] = {}

    def learn(self, replica: str, reported: float, explained: float, events: float) -> None:
        """Take in the late events of one interval, and how many it got of those that came."""
        self._excess[replica] = excess = max(0.0, SMOOTHED * self._excess.get(replica, 0.0) + reported - explained)
        share = (1 - SMOOTHED) * excess / max(1.0, events)
        step = GAIN * (min(share, MOST_AT_ONCE) - self._allowed_share / 2)
        self._values[replica] = min(MAX_CORRECTION, max(0.0, self._of(replica) + step))

    def keep(self, replicas: Collection[str]) -> None:
        """Forget all but these; what they have in common stays."""
        if self._values.keys() - replicas:
            self._values = {name: value for name, value in self._values.items() if name in replicas}
            self._excess = {name: excess for name, excess in self._excess.items() if name in replicas}

    @property
    def typical(self) -> float:
        """That of a replica of which nothing is known: of most others at least so much."""
        return median_low(self._values.values()) if self._values else 0.0

    def slower(self, replica: str) -> float:
        """Return the factor on its μ."""
        return exp(-self._of(replica))

    def _of(self, replica: str) -> float:
        known = self._values.get(replica)
        return self.typical if known is None else known


class ScaleDownDelay:
    """How long fewer replicas must have sufficed before one is stopped: learned from flapping.

    Where demand only falls, none is needed; where it wavers around a threshold, stops and starts alternate.
    """

    def __init__(self, longest_s: float) -> None:
        self._longest_s = longest_s
        self._seconds = 0.0
        self._wanted: deque[tuple[float, float]] = deque()
        self._stopped_at_s = -FLAPPING_S
        self._changed_at_s = 0.0

    def least(self, at_s: float, wanted: float) -> float:
        """Return how many replicas must stay, by their price, where `wanted` would suffice now."""
        self._wanted.append((at_s, wanted))
        while self._wanted[0][0] < at_s - self._seconds - 1e-6:
            self._wanted.popleft()
        return max(count for _, count in self._wanted)

    def note(self, at_s: float, before: float, after: float) -> None:
        """Take in what was decided."""
        if after < before:
            self._stopped_at_s = at_s
        elif after > before and at_s - self._stopped_at_s < FLAPPING_S:
            self._seconds = min(self._longest_s, max(FIRST_S, 2 * self._seconds))
            self._stopped_at_s, self._changed_at_s = -FLAPPING_S, at_s
        elif at_s - self._changed_at_s >= FORGIVEN_S:
            self._seconds, self._changed_at_s = self._seconds / 2 if self._seconds > FIRST_S else 0.0, at_s


class Handovers:
    """When each partition that was moved is expected to be served again: a policy knows where it has sent them."""

    def __init__(self) -> None:
        self._until_s: dict[int, float] = {}

    def begin(self, observation: GroupObservation, moved: Iterable[int]) -> None:
        """Note those that a decision moves."""
        self._until_s |= dict.fromkeys(moved, observation.at_s + observation.rebalance_time_s)

    def remaining_s(self, observation: GroupObservation) -> NDArray[np.float64]:
        """Return how long each partition will still pause, 0 for those that are served."""
        still = {number: until_s for number, until_s in self._until_s.items() if until_s > observation.at_s}
        if not still:
            return np.zeros(len(observation.partitions))
        until_s = np.array([still.get(one.partition, observation.at_s) for one in observation.partitions])
        return until_s - observation.at_s


class Reports:
    """Late events as replicas report them; of those that report nothing what a replay says, until they do."""

    def __init__(self) -> None:
        self.reported_late: dict[str, float] = {}
        """Replica → reported since the last booking, beyond what was booked for it meanwhile."""
        self._booked: dict[str, float] = {}
        """Replica → booked by replays since it reported last."""

    def record_reports(self, observation: GroupObservation) -> None:
        """Take in what one observation says, of those that have left as well."""
        reported = [(one.name, one.late) for one in observation.replicas]
        for name, late in (*reported, *observation.late_of_removed_replicas.items()):
            if late is not None:
                self.reported_late[name] = self.reported_late.get(name, 0) + max(0, late - self._booked.pop(name, 0))

    def replayed(
        self,
        observation: GroupObservation,
        chosen: tuple[Situation, Candidate],
        before: tuple[Situation, Candidate] | None,
        arrived: Floats,
        numbers: Mapping[str, int],
    ) -> dict[str, float]:
        """Return replica → late events by a replay, for each present or previous replica without a report since.

        Key "" has those of all other replicas, if no replica reports.
        chosen: plan now, and at the tick `before`; arrived: events between them, by slot and partition. numbers: number
        of each replica at that tick, by name.
        """
        told, there = self.reported_late, observation.replica_names
        count = 0 if before is None else len(before[0].rates)
        then = {one: name for name, one in numbers.items() if one < count}
        silent = {name for name in (*then.values(), *there) if name not in told}
        if not silent:
            return {}
        late = dict.fromkeys(sorted(silent), 0.0)
        if not any(one.ready and one.name in told for one in observation.replicas):
            late[""] = 0.0
        replays = [(late_for_certain(*chosen, arrived), dict(enumerate(there)))]
        if before is not None:
            replays.append((late_already(*before, arrived), then))
        for events, names in replays:
            for replica, more in enumerate(events.tolist()):
                if (name := names.get(replica, "")) in late:
                    late[name] += more
        return late

    def book(self, replayed: Mapping[str, float]) -> float:
        """Return the late events of one interval. replayed: of those that reported nothing in it, by a replay."""
        late = sum(self.reported_late.values()) + sum(replayed.values())
        self._booked = {name: self._booked.get(name, 0) + more for name, more in replayed.items()}
        self.reported_late = {}
        return late
