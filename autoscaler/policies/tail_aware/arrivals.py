"""How events came: slots of the last intervals tell bursts from streams, and which events wait."""

from collections import deque
from math import ceil
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from autoscaler.model import GroupObservation
from autoscaler.policies.tail_aware.situation import Floats

SHAPES: Final = 8
"""Intervals whose shapes are looked at: enough for a pattern to show, few enough to follow when it changes."""
ALIKE: Final = 1e-9
SLOT_S: Final = 0.1
"""Of a world that does not say how events lay: all of an interval are taken to be one burst in its last slot."""


class Shape(NamedTuple):
    """The share of an interval's events that each slot gets."""

    own: Floats
    """By partition, shape (slots, partitions). One that was silent is taken to be like all."""
    together: Floats
    """Of all events, shape (slots,)."""
    weight: float
    """How likely it is to be the next one: as many events as lay so."""

    @classmethod
    def of(cls, slots: Floats) -> "Shape":
        """Return the shape of events by slot and partition; evenly where there are none."""
        by_slot, events = slots.sum(axis=1), slots.sum(axis=0)
        total = by_slot.sum()
        together = by_slot / total if total > 0 else np.full(len(slots), 1.0 / len(slots))
        own = np.where(events > 0, slots / np.maximum(events, 1.0), together[:, None])
        return cls(own, together, float(total))


class ArrivalHistory:
    """The last intervals, slot by slot."""

    def __init__(self) -> None:
        self._intervals: deque[Floats] = deque(maxlen=SHAPES)
        self._last_s: float | None = None
        self.slot_s = SLOT_S

    @property
    def interval_s(self) -> float:
        """Length of the last interval, in whole slots."""
        return len(self._intervals[-1]) * self.slot_s

    def observe(self, observation: GroupObservation) -> Floats:
        """Take in one more interval; return its events by partition."""
        recent = observation.recent
        if recent is not None and len(recent.counts):
            slots, self.slot_s = np.ascontiguousarray(recent.counts, np.float64), recent.slot_s
        else:
            elapsed_s = 1.0 if self._last_s is None else observation.at_s - self._last_s
            rates = np.array([load.arrival_rate for load in observation.partitions])
            slots = np.zeros((max(1, round(elapsed_s / self.slot_s)), len(rates)))
            slots[-1] = rates * len(slots) * self.slot_s
        self._last_s = observation.at_s
        if self._intervals and self._intervals[-1].shape != slots.shape:
            self._intervals.clear()  # partitions were added, or ticks were missed: other shapes cannot be averaged
        self._intervals.append(slots)
        return np.asarray(slots.sum(axis=0))

    @property
    def last(self) -> Floats:
        """The last interval, shape (slots, partitions)."""
        return self._intervals[-1]

    def shapes(self) -> list[Shape]:
        """Return how events may lie in an interval: as in each of the last ones; one shape where they lay alike.

        They are not averaged: a burst that drifts through the interval would look like a stream.
        """
        average = Shape.of(np.sum(self._intervals, axis=0))
        each = [Shape.of(slots) for slots in self._intervals if slots.any()]
        alike = all(np.allclose(one.own, average.own, rtol=0, atol=ALIKE) for one in each)
        return (
            [average._replace(weight=1.0)]
            if alike
            else [one._replace(weight=one.weight / average.weight) for one in each]
        )

    def waiting(self, lag: Floats, reach_s: float) -> Floats:
        """Return which events wait, by age: the newest `lag` events of each partition, shape (slots, partitions).

        It reaches back over an interval and `reach_s`, as far as is known; older events stand in the first row.
        """
        slots = len(self._intervals[-1]) + ceil(reach_s / self.slot_s) + 1
        arrived = np.concatenate(tuple(self._intervals))[-slots:]
        behind = np.cumsum(arrived[::-1], axis=0)[::-1]  # events of this slot and all later ones
        waits = np.clip(lag[None, :] - (behind - arrived), 0.0, arrived)
        waits[0] += np.maximum(0.0, lag - behind[0])
        return np.asarray(waits)


def uncommitted_left_out(lag: Floats, owners: NDArray[np.int64], done: Floats) -> Floats:
    """Return what waits of `lag`: without what each replica has done since the commits that lag is counted from.

    owners: replica of each partition, −1 for none. done: events that a busy replica does in that time, by replica.
    """
    owned = owners >= 0
    held = np.bincount(owners[owned], lag[owned], minlength=len(done))
    left = np.maximum(0.0, held - done) / np.maximum(held, 1.0)
    return np.asarray(np.where(owned, lag * left[np.where(owned, owners, 0)] if len(done) else lag, lag))
