"""Times at which the commits of a group advance. They show its commit interval, and how long rebalances stop it."""

from collections import Counter
from collections.abc import Mapping
from typing import Final

IDLE_EVERY_S: Final = 0.25
"""Time between two readings of the committed offsets."""
REBALANCE_EVERY_S: Final = 0.05
"""Time between two readings during a rebalance."""
MAX_PARTITIONS: Final = 200  # so many are read, which is cheap
WINDOW_S: Final = 60.0
"""Time without a rebalance from which the commit interval is learned."""


class CommitTimes:
    """Learns from committed offsets, which are read every IDLE_EVERY_S."""

    def __init__(self) -> None:
        self.age_s = 0.0
        """Mean age of a commit: half the commit interval. 0: unknown, or too short to be seen."""
        self._offsets: dict[int, int] = {}
        self._advanced_s: dict[int, tuple[float, float]] = {}
        """Partition → between which two readings its offset advanced last."""
        self._advances = Counter[int]()
        self._quiet_s = self._read_s = 0.0

    def observe(self, at_s: float, offsets: Mapping[int, int], *, rebalances: bool) -> None:
        """Add one reading of the committed offsets by partition."""
        advanced = [number for number, offset in offsets.items() if offset > self._offsets.get(number, offset)]
        self._offsets.update(offsets)
        self._advanced_s |= dict.fromkeys(advanced, (self._read_s, at_s))
        if not rebalances:
            self._advances.update(advanced)
            self._quiet_s += min(at_s - self._read_s, 2 * IDLE_EVERY_S)
        self._read_s = at_s
        if self._quiet_s >= WINDOW_S:
            (_, most), *_ = self._advances.most_common(1) or [(0, 0)]
            interval_s = self._quiet_s / most if most else 0.0  # the busiest partition has an event for each commit
            self.age_s = interval_s / 2 if interval_s > 2 * IDLE_EVERY_S else 0.0
            self._advances, self._quiet_s = Counter(), 0.0

    def pauses(self, began_s: float, ended_s: float) -> list[float]:
        """Return the longest time for which a rebalance may have stopped each partition, seconds.

        It begins at the last commit in the rebalance, because consumers commit when they stop. A partition without such
        a commit is left out. Call it after the first reading that follows the end.
        """
        found = [(since_s, at_s) for since_s, at_s in self._advanced_s.values() if at_s > began_s]
        stopped_s = [max(since_s, began_s) for since_s, at_s in found if since_s >= began_s or at_s >= ended_s]
        return [ended_s - at_s for at_s in stopped_s if at_s <= ended_s]
