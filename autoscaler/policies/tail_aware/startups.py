"""How long a replica takes from its request until it is ready, as seen from tick to tick."""

from collections import deque
from typing import Final

from autoscaler.model import GroupObservation

MEMORY: Final = 20
"""Start-ups that are remembered."""


class StartUps:
    """Learns from the replicas that were not ready when they were first seen."""

    def __init__(self) -> None:
        self._awaited_since_s: dict[str, float] = {}
        self._lasted_s: deque[float] = deque(maxlen=MEMORY)

    def observe(self, observation: GroupObservation) -> None:
        """Take in which replicas are ready now."""
        for replica in observation.replicas:
            if not replica.ready:
                self._awaited_since_s.setdefault(replica.name, observation.at_s)
            elif replica.name in self._awaited_since_s:
                self._lasted_s.append(observation.at_s - self._awaited_since_s.pop(replica.name))
        for name in self._awaited_since_s.keys() - set(observation.replica_names):
            del self._awaited_since_s[name]

    @property
    def typical_s(self) -> float:
        """Three of four start-ups are over by then; 0 while none was seen to take time."""
        ordered = sorted(self._lasted_s)
        return ordered[min(len(ordered) - 1, 3 * len(ordered) // 4)] if ordered else 0.0
