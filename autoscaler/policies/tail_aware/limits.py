"""A limit behind all replicas: the group's rate does not grow with its size, so more replicas would not help."""

from math import inf
from typing import Final

import numpy as np

from autoscaler.model import GroupObservation
from autoscaler.policies.tail_aware.situation import Floats, Ints

HELPED: Final = 0.5
"""Replicas that bring less than this share of what as many brought before do not help."""
BEYOND: Final = 1.1
"""A group that serves this multiple of a limit proves that there is no limit, or no longer."""
SHORT: Final = 0.75
"""A group with enough replicas that serves less than this share of a limit is slow for another reason."""
BUSY: Final = 1.2
"""A replica was surely busy all the time if so many times what it did in an interval waited before it."""
SMOOTHED: Final = 0.5
"""Weight of the previous rate in the smoothed one, per interval."""
FADING: Final = 0.995
"""Decay of the observed maximum rates, per interval."""


class Limit:
    """Learns the limit from whole intervals without changes: the events served by each number of replicas.

    If more replicas are busy and serve hardly more than fewer did, they have met a limit: a shared database, licence or
    machine.
    """

    def __init__(self) -> None:
        self.rate = inf
        """Events/s that all replicas together can serve; inf: no known limit."""
        self._free_rate = 0.0
        """μ of a replica without the limit, events/s, as measured before the limit was met."""
        self._met = False
        """Whether the measured μ is that under the limit, or has not recovered since."""
        self._most: dict[int, float] = {}
        """Number of replicas → maximum events/s that they have served."""
        self._smooth: float | None = None
        """Smoothed events/s that the present replicas serve."""
        self._group: tuple[object, ...] = ()
        self._since_s = 0.0
        self._at_s = 0.0
        self._held: Floats = np.zeros(0)

    @property
    def least_rate(self) -> float:
        """μ of a replica without the limit, events/s, if the measured one was learned under a limit; else 0."""
        return self._free_rate if self._met else 0.0

    def served_of(self, sizes: Floats, interval_s: float) -> Floats:
        """Return how many of these events per interval can be served at all."""
        total = float(sizes.sum())
        return sizes * min(1.0, self.rate * interval_s / total) if total > 0 else sizes

    def observe(self, observation: GroupObservation, owners: Ints, lag: Floats, arrived: Floats, rates: Floats) -> None:
        """Add one interval.

        owners: replica of each partition, −1 for none. lag: waiting events by partition. arrived: events of the
        interval by partition. rates: measured μ of each replica, events/s.
        """
        elapsed_s, before = observation.at_s - self._at_s, self._held
        group = (*((one.name, one.ready) for one in observation.replicas), *owners.tolist())
        owned = owners >= 0
        held: Floats = np.bincount(owners[owned], lag[owned], minlength=len(rates)).astype(np.float64)
        if group != self._group:
            self._group, self._since_s, self._smooth = group, observation.at_s, None
        elif self._at_s - self._since_s > observation.rebalance_time_s and bool(owned.all()):
            done = before + np.bincount(owners, arrived, minlength=len(rates)) - held
            busy = (before > BUSY * done)[np.unique(owners)]
            self._learn(len(busy), float(done.sum()) / elapsed_s, busy=bool(busy.all()))
        if self.rate == inf and len(rates):
            told = float(np.median(rates))
            self._met = self._met and told < self._free_rate
            self._free_rate = max(self._free_rate * FADING, told)
        self._at_s, self._held = observation.at_s, held

    def _learn(self, replicas: int, served: float, *, busy: bool) -> None:
        before = served if self._smooth is None else self._smooth
        self._smooth = now = before + SMOOTHED * (served - before)
        if self.rate < inf:
            expected = min(self.rate, replicas * self._free_rate)
            if now > BEYOND * self.rate or (busy and now < SHORT * expected):
                self._met = now > SHORT * expected
                self.rate = inf
                self._most.clear()
        elif busy:
            fewer = {count: most for count, most in self._most.items() if count < replicas}
            if any(now < most * (1 + HELPED * (replicas - count) / count) for count, most in fewer.items()):
                self.rate, self._met = max(now, *fewer.values()), True
        self._most = {count: most * FADING for count, most in self._most.items()}
        self._most[replicas] = max(now, self._most.get(replicas, 0.0))
