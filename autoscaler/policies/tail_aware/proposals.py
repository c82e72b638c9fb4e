"""The plans that could follow: stay, or so many replicas with as few moves as possible."""

from collections.abc import Iterator
from heapq import heapify, heapreplace
from math import sqrt
from typing import Final, NamedTuple

import numpy as np

from autoscaler.packing.few_moves import fewest_bins, fewest_moves, largest_first, relieved
from autoscaler.policies.tail_aware.prediction import ROUNDING, STUCK, late_under
from autoscaler.policies.tail_aware.queues import NEGLIGIBLE
from autoscaler.policies.tail_aware.situation import Floats, Ints, Proposal, Situation

SMALL: Final = 12
"""Groups up to so many partitions are searched exhaustively …"""
STEPS: Final = 20_000
"""… within so many steps."""
DEVIATIONS: Final = (1.0, 2.0, 3.0)
"""Headroom factors that are tried."""
HALVINGS: Final = 6
"""Steps of the search for the fill level of a number of replicas: to within 1/64."""
LEAST_FILL: Final = 0.3
"""Minimum share of its capacity that a replica may be planned for."""


class _Packed(NamedTuple):
    """Partitions to pack."""

    sizes: Floats
    """Events per interval, by partition."""
    order: Ints
    falling: Floats
    """Their sizes."""

    @classmethod
    def of(cls, sizes: Floats) -> "_Packed":
        order = largest_first(sizes)
        return cls(sizes, order, sizes[order])


def proposals(now: Situation, kept: int = 0) -> Iterator[Proposal]:
    """Yield the present plan where it is one, then plans with few moves.

    kept: replicas of which no more may be stopped, so that a plan with so many is wanted. Partitions are packed twice:
    by what will arrive, and by what waits where that is the tighter of the two.
    """
    replicas = len(now.rates)
    stay = Proposal(now.owners, tuple(range(replicas)))
    may_stay = replicas > 0 and bool((now.owners >= 0).all())
    if may_stay:
        yield stay
    time_left_s = max(now.slot_s, now.target_s - now.slot_s)
    urgent = np.maximum(now.sizes, now.waiting.sum(axis=0) * (now.capacity / (now.typical_rate * time_left_s)))
    pressed = not may_stay or late_under(now, stay) > NEGLIGIBLE
    coming = _Packed.of(now.sizes)
    packings = [(coming, limit) for limit in dict.fromkeys(_limits(now))]
    if pressed and (urgent > now.sizes).any():
        packings.append((_Packed.of(urgent), now.capacity))
    for load, limit in packings:
        yield from _plans(now, load, limit, kept, levelled=pressed and limit == now.capacity)


def _plans(now: Situation, load: _Packed, limit: float, kept: int, *, levelled: bool) -> Iterator[Proposal]:
    """Yield plans with as many replicas as are needed, or about as many. levelled: also such as fill all alike."""
    partitions = len(load.sizes)
    fewest = fewest_bins(load.falling, limit, partitions)
    counts = {min(len(now.rates), now.most_useful), fewest}
    counts |= {fewest - 1, fewest + 1} if partitions <= SMALL else set()
    counts |= {kept} if kept < len(now.rates) else set()
    for count in sorted(counts):
        if 1 <= count <= now.most_useful:
            placed = _placed(now, load, limit, count)
            yield placed
            if (direct := _direct(now, load.sizes, limit, placed)) is not None:
                yield direct
            if levelled:
                yield _placed(now, load, _level(load.falling, count), count)


def needed(now: Situation, more: float) -> int:
    """Return the fewest replicas that can serve `more` events per interval than are planned for, shared out alike."""
    total = now.sizes.sum()
    grown = now.sizes * (1 + more / total) if total > 0 else now.sizes + more / len(now.sizes)
    return fewest_bins(grown[largest_first(grown)], now.capacity, len(grown))


def _level(falling: Floats, count: int) -> float:
    """Return about the least that the fullest of so many replicas can hold."""
    low = max(float(falling[0]), float(falling.sum()) / count)
    high = 2 * low
    if fewest_bins(falling, least := _halved(low, high), count) <= count:  # as in most large groups
        return least * (1 + ROUNDING)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if fewest_bins(falling, middle, count) <= count:
            high = middle
        else:
            low = middle
    return high * (1 + ROUNDING)


def _halved(low: float, high: float) -> float:
    for _ in range(HALVINGS):
        high = (low + high) / 2
    return high


def _limits(now: Situation) -> Iterator[float]:
    """Yield what a replica may be planned to hold: all of its capacity, then less, where arrivals are uncertain.

    Room is left for so many standard deviations of what a full replica gets.
    """
    capacity = now.capacity
    yield capacity
    total = now.sizes.sum()
    dispersion = now.variance.sum() / total if total > 0 else 0.0
    for deviations in DEVIATIONS:
        limit = capacity - deviations * sqrt(dispersion * capacity)
        if capacity * LEAST_FILL < limit < capacity * 0.995:
            yield limit
    for factor in now.headroom.tolist():
        yield capacity / factor


def _placed(now: Situation, load: _Packed, limit: float, count: int) -> Proposal:
    """Return the plan with `count` replicas that moves least; where not everything fits, the fullest are left so."""
    replicas, before = len(now.rates), now.owners
    weights = now.sizes + NEGLIGIBLE + np.where(now.in_handover_s > 0, STUCK, 0.0)
    numbers = np.array([*range(replicas), *now.new(max(0, count - replicas))])
    if len(load.sizes) <= SMALL:
        owners, fits = fewest_moves(load.sizes, weights, before, _capacities(now, limit, numbers), count, STEPS)
        if fits:
            holding = sorted(set(owners.tolist()))
            spare = [one for one in range(len(numbers)) if one not in holding]
            kept = sorted(holding + spare[: count - len(holding)])
            return Proposal(numbers[owners], tuple(numbers[kept].tolist()))
    closed = np.zeros(len(numbers), np.int64)
    if count < len(numbers):
        owned = before >= 0
        held = np.bincount(before[owned], weights[owned], minlength=len(numbers))
        closed[np.argsort(held, kind="stable")[: len(numbers) - count]] = 1
    owners, _ = relieved(load.sizes, load.order, before, _capacities(now, limit, numbers), closed)
    return Proposal(numbers[owners], tuple(numbers[closed == 0].tolist()))


def _capacities(now: Situation, limit: float, numbers: Ints) -> Floats:
    return limit * now.rates_up_to(int(numbers.max()))[numbers] / now.typical_rate


def _direct(now: Situation, sizes: Floats, limit: float, placed: Proposal) -> Proposal | None:
    """Return the same with moves between present replicas led to the new ones instead where there is room; else None.

    A present replica has its successor's partitions at once, and keeps its own until the new one has started: in a
    chain of moves it would serve both.
    """
    present = len(now.rates)
    chained = np.flatnonzero((placed.owners != now.owners) & (placed.owners < present) & (now.owners >= 0))
    fresh = [one for one in placed.replicas if one >= present]
    if not (now.start_s > 0 and len(chained) and fresh):
        return None
    owners = placed.owners.copy()
    held = np.bincount(owners, sizes, minlength=max(fresh) + 1)
    most = _capacities(now, limit, np.arange(max(fresh) + 1)) * (1 + ROUNDING)
    emptiest = [(float(held[one]), one) for one in fresh]
    heapify(emptiest)
    for partition in chained[largest_first(sizes[chained])].tolist():
        load, one = emptiest[0]
        load += float(sizes[partition])
        if load <= most[one]:
            heapreplace(emptiest, (load, one))
            owners[partition] = one
    return Proposal(owners, placed.replicas)
