"""A limit behind all replicas: what the group serves does not grow with it, so more replicas would help nobody."""

from math import inf
from typing import Final

import numpy as np

from autoscaler.model import GroupObservation
from autoscaler.policies.tail_aware.situation import Floats, Ints

HELPED: Final = 0.5
"""Replicas that bring less than this share of what as many brought before do not help."""
BEYOND: Final = 1.1
"""Who serves so many times a limit shows that there is none, or no longer."""
SHORT: Final = 0.75
"""Who serves less than this share of a limit, with replicas enough for it, has another reason to be slow."""
BUSY: Final = 1.2
"""A replica was surely busy all the time if so many times what it did in an interval waited before it."""
SMOOTHED: Final = 0.5
"""Of a rate, from interval to interval."""
FADING: Final = 0.995
"""Of what was seen once, from interval to interval."""


class Limit:
    """Learns from whole intervals in which nothing changed: how many events were served by how many replicas.

    What some have served, all can serve; where all are busy, it is what they can. More replicas that are busy and serve
    hardly more than fewer did have met a limit: a database, a licence, a machine that they share.
    """

    def __init__(self) -> None:
        self.rate = inf
        """Events/s that all replicas together can serve; inf: nothing is known to hold them up."""
        self._free_rate = 0.0
        """μ of a replica that nobody holds up, events/s, as it was told before the limit was met."""
        self._met = False
        """μ is told as it was under the limit, or has not recovered since."""
        self._most: dict[int, float] = {}
        """Events/s that so many replicas have served."""
        self._smooth: float | None = None
        """Events/s that those of now serve."""
        self._group: tuple[object, ...] = ()
        self._since_s = 0.0
        self._at_s = 0.0
        self._held: Floats = np.zeros(0)

    @property
    def least_rate(self) -> float:
        """μ of a replica without the limit, events/s, where what is told of it was learned under one; else 0."""
        return self._free_rate if self._met else 0.0

    def served_of(self, sizes: Floats, interval_s: float) -> Floats:
        """Return how many of these events per interval can be served at all."""
        total = float(sizes.sum())
        return sizes * min(1.0, self.rate * interval_s / total) if total > 0 else sizes

    def observe(self, observation: GroupObservation, owners: Ints, lag: Floats, arrived: Floats, rates: Floats) -> None:
        """Take in one more interval.

        owners: replica of each partition, −1 for none. lag: events that wait, by partition. arrived: events of the
        interval, by partition. rates: μ of each replica as told, events/s.
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
