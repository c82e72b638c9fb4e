"""The arrival envelope: how many events come at most within any window, however even their average is.

A partition whose arrivals never exceed σ + ρ·t within any window of t seconds makes a server of rate ≥ ρ wait for at
most σ events (Cruz 1991, network calculus). What is learned is the curve itself, A(t): the most events seen within a
window of t, for windows of 1, 2, … slots up to a horizon. σ above any rate ρ is then max over t of A(t) − ρ·t, and
nobody needs to know ρ beforehand. Windows of older observations count less, half after each half-life.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from autoscaler.model import RecentArrivals

Floats = NDArray[np.float64]
REMEMBERED_HALF_LIVES = 4
"""Samples older than that, which count a sixteenth, are dropped."""


class Envelope:
    """Envelopes of all partitions, and of any groups of them together.

    horizon_s: longest window; it should hold a whole burst with the quiet before it, and no trend of the load.
    O(slots · partitions · horizon in slots) to observe.
    """

    def __init__(self, *, horizon_s: float = 1.0, half_life_s: float = 10.0) -> None:
        if not (0 < horizon_s < math.inf and 0 < half_life_s < math.inf):
            raise ValueError(f"horizon and half-life must be positive seconds, got {horizon_s} and {half_life_s}")
        self._horizon_s = horizon_s
        self._half_life_s = half_life_s
        self._slot_s = 0.0
        self._longest = 1
        self._most: Floats = np.empty((0, 0))
        """A by window length (in slots, from 1) and partition."""
        self._samples: NDArray[np.int32] = np.empty((0, 0), np.int32)
        """The last slots, a ring; `_next` is its oldest row."""
        self._weights: Floats = np.empty(0)
        """What each of these rows counts."""
        self._next = 0
        self._slots = 0.0
        self._sum: Floats = np.empty(0)
        self._squares: Floats = np.empty(0)

    def observe(self, recent: RecentArrivals) -> None:
        """Take in the slots since the observation before. Partitions may be added; new ones were silent so far.

        Raises ValueError if slots have another length than before, or partitions have vanished.
        """
        counts = recent.counts
        self._fit_shape(recent.slot_s, counts.shape[1])
        if not len(counts):
            return
        faded = 0.5 ** (len(counts) * self._slot_s / self._half_life_s)
        block = np.concatenate((self._newest(self._longest - 1), counts), dtype=np.int64)
        self._most = np.maximum(self._most * faded, _most(block, self._longest, np.ones(len(counts))))
        self._slots = self._slots * faded + len(counts)
        self._sum = self._sum * faded + counts.sum(axis=0)
        self._squares = self._squares * faded + np.square(counts, dtype=np.float64).sum(axis=0)
        kept = counts[-len(self._samples) :]
        rows = (self._next + np.arange(len(kept))) % len(self._samples)
        self._weights *= faded
        self._samples[rows], self._weights[rows] = kept, 1.0
        self._next = (self._next + len(kept)) % len(self._samples)

    @property
    def rates(self) -> Floats:
        """Mean λ of each partition, events/s, newer slots counting more."""
        return self._sum / (self._slots * self._slot_s) if self._slots else self._sum

    def sigma(self, rates: Floats | None = None, *, at_once: bool = True) -> Floats:
        """Return σ of each partition, events above its rate (`rates`, events/s; None: its mean).

        at_once: the events of a slot may all have come in one instant, so that a window of k slots may have lasted
        k − 1 (an upper bound: bursts of n give n, smooth arrivals one slot's worth). Otherwise they came evenly within
        the slot (a lower bound: n less one slot of ρ, and next to nothing).
        """
        return self._above(self._most, self.rates if rates is None else rates, at_once)

    def joint(self, groups: Sequence[NDArray[np.intp]], rates: Floats, *, at_once: bool = True) -> Floats:
        """Return σ of each group of partitions taken together above its rate; never more than its members' sum.

        groups: partition numbers, none empty. rates: events/s by group.
        """
        columns, starts = np.concatenate(groups), np.cumsum([0, *map(len, groups)])[:-1]
        together = np.add.reduceat(self._samples[:, columns], starts, axis=1, dtype=np.int64)
        before = np.zeros((self._longest - 1, len(groups)), np.int64)
        in_order = np.concatenate((before, np.roll(together, -self._next, axis=0)))
        most = _most(in_order, self._longest, np.roll(self._weights, -self._next))
        return self._above(most, rates, at_once)

    def dispersion(self) -> Floats:
        """Return variance / mean of the events in a slot, by partition: 1 poisson, below smooth, above bursts.

        0 where nothing arrived. A rate that changes counts as a burst of its own.
        """
        if not self._slots:
            return self._sum
        mean = self._sum / self._slots
        variance = np.maximum(0.0, self._squares / self._slots - mean * mean)
        return np.divide(variance, mean, out=np.zeros_like(mean), where=mean > 0)

    def _fit_shape(self, slot_s: float, partitions: int) -> None:
        if not self._slot_s:
            self._slot_s = slot_s
            self._longest = max(1, round(self._horizon_s / slot_s))
            remembered = max(self._longest, round(REMEMBERED_HALF_LIVES * self._half_life_s / slot_s))
            self._most, self._samples = np.zeros((self._longest, 0)), np.zeros((remembered, 0), np.int32)
            self._weights = np.zeros(remembered)
        added = partitions - len(self._sum)
        if slot_s != self._slot_s or added < 0:
            raise ValueError(
                f"slots of {slot_s} s with {partitions} partitions cannot follow slots of {self._slot_s} s with "
                f"{len(self._sum)}"
            )
        if added:
            self._most = np.pad(self._most, ((0, 0), (0, added)))
            self._samples = np.pad(self._samples, ((0, 0), (0, added)))
            self._sum, self._squares = np.pad(self._sum, (0, added)), np.pad(self._squares, (0, added))

    def _newest(self, slots: int) -> NDArray[np.int32]:
        return self._samples[(self._next - slots + np.arange(slots)) % len(self._samples)]

    def _above(self, most: Floats, rates: Floats, at_once: bool) -> Floats:
        lasted_s = (np.arange(1, len(most) + 1) - at_once) * self._slot_s
        return np.asarray(np.maximum(0.0, (most - lasted_s[:, None] * rates).max(axis=0)))


def _most(counts: NDArray[np.int64], longest: int, weights: Floats) -> Floats:
    """Return the most weighted events within any window, by its length in slots (1 … longest) and by column.

    counts: by slot, the first longest − 1 of which are only the beginnings of windows that end in a later one.
    weights: of each window by the slot in which it ends.
    """
    until = np.concatenate((np.zeros((1, counts.shape[1])), np.cumsum(counts, axis=0, dtype=np.float64)))
    ends = until[longest:]
    most = np.empty((longest, counts.shape[1]))
    for length in range(1, longest + 1):
        within = ends - until[longest - length : len(until) - length]
        within *= weights[:, None]
        most[length - 1] = within.max(axis=0)
    return most
