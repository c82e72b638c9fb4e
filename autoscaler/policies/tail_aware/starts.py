"""Start-up times, owners during a start, and the number of replicas to keep so that no start is needed."""

from collections import deque
from math import ceil, inf
from typing import Final

import numpy as np
from numpy.typing import NDArray

from autoscaler.model import GroupObservation
from autoscaler.packing.few_moves import fewest_bins, largest_first
from autoscaler.policies.tail_aware.memory import BUDGET_DECAY_PER_TICK
from autoscaler.policies.tail_aware.situation import Floats

MIN_QUIET_TICKS: Final = 2
"""Ticks after a start until the events that waited for it are served."""
OBSERVATION_TICKS: Final = 2
"""Ticks until a surge and a ready replica are observed."""
STARTS: Final = 20
"""Start-ups that are remembered."""
OVERDUE: Final = 0.25
"""Minimum remaining share of the time that a start has taken so far."""
MIN_START_UPS: Final = 3
"""Observed start-ups that outweigh the configured start-up time."""


class StartUpTimes:
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
        at_s = observation.at_s
        each = ((one.ready, at_s - self._requested_s.get(one.name, at_s)) for one in observation.replicas)
        return np.array([0.0 if ready else max(typical_s - s, OVERDUE * s) for ready, s in each], np.float64)

    def typical_s(self, configured_s: float, interval_s: float) -> float:
        """Return the time within which three of four start-ups end; at least `configured_s` until enough are observed.

        A replica that is ready at its first observation took at most an interval, or `configured_s`.
        """
        ordered = sorted(min(configured_s, interval_s) if one is None else one for one in self._lasted_s)
        seen_s = ordered[min(len(ordered) - 1, 3 * len(ordered) // 4)] if ordered else 0.0
        return seen_s if len(ordered) >= MIN_START_UPS else max(configured_s, seen_s)


class ReplicaTracker:
    """Replica that serves each partition: until its owner has started, the previous owner."""

    def __init__(self) -> None:
        self._names: dict[int, str] = {}

    def now(self, observation: GroupObservation) -> dict[int, str]:
        """Return partition → replica; the owner if no previous one is known to serve."""
        ready = {one.name for one in observation.replicas if one.ready}
        before = self._names
        self._names = {
            partition: before[partition] if owner not in ready and before.get(partition) in ready else owner
            for partition, owner in observation.assignment.items()
        }
        return self._names


class PeakFloor:
    """Scale-down floor: the replica count that recent traffic would have needed, kept as long as a restart costs more.

    Idle replicas are kept until they have cost as much as the late events of a restart (ski rental): at most twice the
    cost with hindsight (Lin, Wierman, Andrew, Thereska: Dynamic right-sizing for power-proportional data centers,
    INFOCOM 2011).
    """

    def __init__(self, longest_s: float) -> None:
        self._longest_s = longest_s
        self._late = 0.0
        self._starts = 0.0
        self._caught_up = False
        """With the load that was there at first, or never soon."""
        self._first_s = inf
        self._came: deque[Floats] = deque()
        self._enough: deque[tuple[float, int]] = deque()

    def book(self, late: float, startups: StartUpTimes) -> None:
        """Add what one interval brought: what is late from a start on until two ticks after it is the start's.

        But not that of the first ones: a load that was there before the policy says nothing of one that comes back.
        """
        self._caught_up = self._caught_up or startups.quiet > MIN_QUIET_TICKS
        if self._caught_up:
            self._starts = self._starts * BUDGET_DECAY_PER_TICK + startups.requested
            self._late = self._late * BUDGET_DECAY_PER_TICK + (late if startups.quiet <= MIN_QUIET_TICKS else 0.0)

    def observe(
        self, at_s: float, came: Floats, slot_s: float, *, startup_s: float, rate: float, target_s: float, most: int
    ) -> None:
        """Take in one more interval.

        came: its events, shape (slots, partitions). startup_s: what a start takes: until a surge is seen and a replica
        for it is ready, others serve alone what is due. rate: events/s of a replica. most: replicas that would serve
        such intervals one after the other.
        """
        if self._came and self._came[-1].shape != came.shape:
            self._came.clear()
        self._came.append(came)
        alone = ceil(max(0.0, startup_s - target_s) / (len(came) * slot_s)) + OBSERVATION_TICKS
        while len(self._came) > alone:
            self._came.popleft()
        self._enough.append((at_s, min(most, self._enough_for_last(slot_s, rate, target_s))))
        while self._enough[0][0] < at_s - self._longest_s:
            self._enough.popleft()
        self._first_s = min(self._first_s, at_s)
        self._caught_up = self._caught_up or at_s >= self._first_s + self._longest_s

    def least(self, at_s: float, late_price_s: float) -> int:
        """Return how many replicas must stay; 0 before anything came. late_price_s: of a late event."""
        kept_s = min(self._longest_s, late_price_s * self._late / max(1.0, self._starts))
        return max((count for seen_s, count in self._enough if seen_s >= at_s - kept_s - 1e-6), default=0)

    def _enough_for_last(self, slot_s: float, rate: float, target_s: float) -> int:
        """Return how few replicas would have served the last interval in time, had they begun with nothing to do.

        Whenever that was: what came since is due W after the slot in which it came.
        """
        came = np.concatenate(self._came)
        until = np.concatenate([[0.0], np.cumsum(came.sum(axis=1))])
        begun, ended = np.arange(len(came)), np.arange(len(came) - len(self._came[-1]), len(came))[:, None]
        served = rate * (np.maximum(0, ended - begun) * slot_s + target_s)
        busy = np.where(begun <= ended, (until[ended + 1] - until[begun]) / served, 0.0)
        most = float(busy.max())
        if not most:
            return 1
        since = int(busy.max(axis=0).argmax())
        sizes = came[since:].sum(axis=0)
        return fewest_bins(sizes[largest_first(sizes)], float(sizes.sum()) / most, len(sizes))
