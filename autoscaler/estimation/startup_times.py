"""Start-up times of replicas: how long a start takes, alone and together with others."""

from collections import deque
from typing import Final

import numpy as np

from autoscaler.model import GroupObservation

MAX_STARTS: Final = 16
"""Number of the newest starts that are kept."""
TOGETHER_S: Final = 0.1
"""Assumed delay of a start by each other one at the same time, until different numbers have started: processor time."""


class StartUpTimes:
    """Learns how long starts take, and how much longer several together."""

    def __init__(self) -> None:
        self._started: dict[str, float] | None = None
        """Ready replica → seconds that its start took; None: nothing was observed yet."""
        self._together: dict[str, int] = {}
        """Replica that starts, or has just started → how many start at the same time."""
        self._lasted: deque[tuple[int, float]] = deque(maxlen=MAX_STARTS)
        """(Replicas that started at the same time, seconds of one of them)."""
        self.alone_s = self.each_s = 0.0
        """The time of a start alone, and the time that each other start at the same moment adds."""

    def observe(self, observation: GroupObservation) -> None:
        """Add a tick. The configured time counts until a start was observed. The first replicas may be older."""
        replicas, started = observation.replicas, self._started
        if started is None:
            started = {one.name: one.starting_s for one in replicas}
        starts = [one for one in replicas if not one.ready or one.starting_s != started.get(one.name)]
        self._together = {one.name: self._together.get(one.name, len(starts)) for one in starts}
        self._started = {one.name: one.starting_s for one in replicas if one.ready}
        if ended := [(self._together[one.name], one.starting_s) for one in starts if one.ready and one.starting_s]:
            self._lasted += ended
            self.alone_s, self.each_s = self._fitted()
        elif not self._lasted:
            self.alone_s, self.each_s = observation.startup_s, min(TOGETHER_S, observation.startup_s / 2)

    def _fitted(self) -> tuple[float, float]:
        """Return the third quartile of recent starts alone, and the least slope that explains those together."""
        counts, lasted_s = np.array(self._lasted).T
        wide, excess_s = counts - counts.mean(), lasted_s - lasted_s.mean()
        if not (spread := float(wide @ wide)):  # the counts are equal, so the part of the others is unknown
            each_s = min(TOGETHER_S, float(lasted_s.mean()) / (1 + counts[0]))
        else:
            each_s = float(wide @ excess_s) / spread
            rest_s = excess_s - each_s * wide
            # two standard errors less: starts of very different lengths have a slope by chance
            each_s = max(0.0, each_s - 2 * (float(rest_s @ rest_s) / max(1, len(counts) - 2) / spread) ** 0.5)
        alone = np.sort(lasted_s - each_s * (counts - 1))
        return max(0.0, float(alone[3 * len(alone) // 4])), each_s

    def remaining_s(self, observation: GroupObservation) -> list[float]:
        """Return how long each replica will still take to start. An overdue start takes another quarter of its time."""
        usual_s, each_s = self.alone_s - self.each_s, self.each_s
        each = ((one, usual_s + each_s * max(1, self._together.get(one.name, 1))) for one in observation.replicas)
        return [0.0 if one.ready else max(s - one.starting_s, 0.25 * one.starting_s) for one, s in each]
