"""When the count of replicas changed, as it was seen: what a policy wanted may have been vetoed."""

import math
from collections import deque

from autoscaler.model import GroupObservation


class Scalings:
    """Remembers changes of the requested count for `memory_s`; each at the tick before the one at which it shows."""

    def __init__(self, memory_s: float) -> None:
        self._memory_s = memory_s
        self._changes: deque[tuple[float, int]] = deque()
        self._seen: tuple[float, int] | None = None
        self.last_s = -math.inf
        """When the count changed last, however long ago."""

    def observe(self, observation: GroupObservation) -> None:
        """Take in one tick."""
        at_s, count = observation.at_s, observation.requested_replicas
        if self._seen is not None and count != self._seen[1]:
            self.last_s = self._seen[0]
            self._changes.append((self.last_s, count - self._seen[1]))
        self._seen = at_s, count
        while self._changes and self._changes[0][0] <= at_s - self._memory_s:
            self._changes.popleft()

    def added(self, since_s: float) -> int:
        """Return how many replicas came after `since_s`, those that left again included."""
        return sum(change for at_s, change in self._changes if at_s > since_s and change > 0)

    def removed(self, since_s: float) -> int:
        """Return how many replicas left after `since_s`."""
        return -sum(change for at_s, change in self._changes if at_s > since_s and change < 0)
