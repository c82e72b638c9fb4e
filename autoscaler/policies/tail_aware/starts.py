"""What a start takes, who serves until it is over, and how many replicas are kept so that none is needed."""

from collections import deque
from typing import Final

import numpy as np
from numpy.typing import NDArray

from autoscaler.model import GroupObservation
from autoscaler.policies.tail_aware.memory import KEPT

SETTLED: Final = 2
"""Ticks after a start until what waited for it is served."""
STARTS: Final = 20
"""Start-ups that are remembered."""
OVERDUE: Final = 0.25
"""Of the time that a start has taken, at least so much is still to come: what lasts long may last longer."""
ENOUGH: Final = 3
"""Start-ups that say more than what the world says of itself."""


class StartUps:
    """How long a replica takes from its request until it is ready, as seen from tick to tick.

    One is requested at the tick before the first that sees it.
    """

    def __init__(self) -> None:
        self._known: frozenset[str] | None = None
        self._last_s = 0.0
        self._requested_s: dict[str, float] = {}
        self._lasted_s: deque[float | None] = deque(maxlen=STARTS)
        self.quiet = 0
        """Ticks in a row at which all were ready."""
        self.requested = 0
        """Replicas that were seen to start at the last tick."""

    def observe(self, observation: GroupObservation) -> None:
        """Take in which replicas are ready now."""
        names = frozenset(observation.replica_names)
        self.quiet = self.quiet + 1 if all(one.ready for one in observation.replicas) else 0
        self.requested = 0
        for replica in observation.replicas:
            if replica.ready and replica.name in self._requested_s:
                self._lasted_s.append(observation.at_s - self._requested_s.pop(replica.name))
            elif self._known is not None and replica.name not in self._known:
                if replica.ready:
                    self._lasted_s.append(None)
                else:
                    self._requested_s[replica.name] = self._last_s
                    self.requested += 1
        for name in self._requested_s.keys() - names:
            del self._requested_s[name]
        self._known, self._last_s = names, observation.at_s

    def remaining_s(self, observation: GroupObservation, typical_s: float) -> NDArray[np.float64]:
        """Return how long each replica will still take until it is ready, 0 for those that are."""
        elapsed_s = np.array(
            [
                0.0 if one.ready else observation.at_s - self._requested_s.get(one.name, observation.at_s)
                for one in observation.replicas
            ]
        )
        starting = np.array([not one.ready for one in observation.replicas], bool)
        return np.where(starting, np.maximum(typical_s - elapsed_s, OVERDUE * elapsed_s), 0.0)

    def typical_s(self, told_s: float, interval_s: float) -> float:
        """Return by when three of four start-ups are over; no less than the world says until enough were seen.

        One that was ready at the first look took at most an interval, and less where less is told.
        """
        ordered = sorted(min(told_s, interval_s) if one is None else one for one in self._lasted_s)
        seen_s = ordered[min(len(ordered) - 1, 3 * len(ordered) // 4)] if ordered else 0.0
        return seen_s if len(ordered) >= ENOUGH else max(told_s, seen_s)


class Holders:
    """Who serves each partition: until its owner has started, who had it before."""

    def __init__(self) -> None:
        self._names: dict[int, str] = {}

    def now(self, observation: GroupObservation) -> dict[int, str]:
        """Return partition → replica, the owner where nobody else is known to be there."""
        ready = {one.name for one in observation.replicas if one.ready}
        before = self._names
        self._names = {
            partition: before[partition] if owner not in ready and before.get(partition) in ready else owner
            for partition, owner in observation.assignment.items()
        }
        return self._names


class Levels:
    """How many replicas were needed of late, and for how long as many are kept: until their idling has cost as much as
    what would be late if they had to start again, as far as past starts tell.

    Ski rental: who waits until then pays at most twice what hindsight would (Lin, Wierman, Andrew, Thereska: Dynamic
    right-sizing for power-proportional data centers, INFOCOM 2011).
    """

    def __init__(self, longest_s: float) -> None:
        self._longest_s = longest_s
        self._late = 0.0
        self._starts = 0.0
        self._needed: deque[tuple[float, int]] = deque()

    def book(self, late: float, startups: StartUps) -> None:
        """Add what one interval brought: what is late from a start on until two ticks after it is the start's."""
        self._starts = self._starts * KEPT + startups.requested
        self._late = self._late * KEPT + (late if startups.quiet <= SETTLED else 0.0)

    def least(self, at_s: float, needed: int, late_price_s: float) -> int:
        """Return how many replicas must stay, where what came last needs `needed`."""
        kept_s = min(self._longest_s, late_price_s * self._late / max(1.0, self._starts))
        self._needed.append((at_s, needed))
        while self._needed[0][0] < at_s - self._longest_s:
            self._needed.popleft()
        return max(count for seen_s, count in self._needed if seen_s >= at_s - kept_s - 1e-6)
