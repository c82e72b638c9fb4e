"""How long fewer replicas must have sufficed before one is stopped: learned from the stops that were regretted."""

from collections import deque
from typing import Final

REGRET_S: Final = 10.0
"""A replica that is started so soon after one was stopped should not have been stopped."""
FIRST_S: Final = 1.0
"""Patience after the first regret; each further one doubles it."""
FORGIVEN_S: Final = 120.0
"""So long without a regret halves it."""


class Patience:
    """Where demand only falls, none is needed; where it wavers around a threshold, stops and starts alternate."""

    def __init__(self, longest_s: float) -> None:
        self._longest_s = longest_s
        self._seconds = 0.0
        self._wanted: deque[tuple[float, int]] = deque()
        self._stopped_at_s = -REGRET_S
        self._changed_at_s = 0.0

    @property
    def seconds(self) -> float:
        """What has been learned."""
        return self._seconds

    def least(self, at_s: float, wanted: int, startup_s: float) -> int:
        """Return how many replicas must stay, where `wanted` would suffice now.

        startup_s: a replica that takes long to come back is not stopped for less.
        """
        self._wanted.append((at_s, wanted))
        while self._wanted[0][0] < at_s - self._seconds - startup_s - 1e-6:
            self._wanted.popleft()
        return max(count for _, count in self._wanted)

    def note(self, at_s: float, before: int, after: int) -> None:
        """Take in what was decided."""
        if after < before:
            self._stopped_at_s = at_s
        elif after > before and at_s - self._stopped_at_s < REGRET_S:
            self._seconds = min(self._longest_s, max(FIRST_S, 2 * self._seconds))
            self._stopped_at_s, self._changed_at_s = -REGRET_S, at_s
        elif at_s - self._changed_at_s >= FORGIVEN_S:
            self._seconds, self._changed_at_s = self._seconds / 2 if self._seconds > FIRST_S else 0.0, at_s
