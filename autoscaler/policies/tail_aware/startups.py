"""How long a replica takes from its request until it is ready, as seen from tick to tick."""

from collections import deque
from typing import Final

from autoscaler.model import GroupObservation

MEMORY: Final = 20
"""Start-ups that are remembered."""
ENOUGH: Final = 3
"""Start-ups that say more than what the world says of itself."""


class StartUps:
    """Learns from the replicas that came; one is requested at the tick before the first that sees it."""

    def __init__(self) -> None:
        self._known: frozenset[str] | None = None
        self._last_s = 0.0
        self._requested_s: dict[str, float] = {}
        self._lasted_s: deque[float | None] = deque(maxlen=MEMORY)

    def observe(self, observation: GroupObservation) -> None:
        """Take in which replicas are ready now."""
        names = frozenset(observation.replica_names)
        for replica in observation.replicas:
            if replica.ready and replica.name in self._requested_s:
                self._lasted_s.append(observation.at_s - self._requested_s.pop(replica.name))
            elif self._known is not None and replica.name not in self._known:
                if replica.ready:
                    self._lasted_s.append(None)
                else:
                    self._requested_s[replica.name] = self._last_s
        for name in self._requested_s.keys() - names:
            del self._requested_s[name]
        self._known, self._last_s = names, observation.at_s

    def typical_s(self, told_s: float, interval_s: float) -> float:
        """Return by when three of four start-ups are over; no less than the world says until enough were seen.

        One that was ready at the first look took at most an interval, and less where less is told.
        """
        ordered = sorted(min(told_s, interval_s) if one is None else one for one in self._lasted_s)
        seen_s = ordered[min(len(ordered) - 1, 3 * len(ordered) // 4)] if ordered else 0.0
        return seen_s if len(ordered) >= ENOUGH else max(told_s, seen_s)
