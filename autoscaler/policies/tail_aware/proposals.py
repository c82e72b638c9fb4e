"""The plans that could follow: stay, or so many replicas with as few moves as possible."""

from collections.abc import Iterator
from math import sqrt
from typing import Final

import numpy as np

from autoscaler.packing.few_moves import best_fit, fewest_moves, relieved
from autoscaler.policies.tail_aware.prediction import NEGLIGIBLE, ROUNDING, STUCK, late_under, rates_of
from autoscaler.policies.tail_aware.situation import Floats, Proposal, Situation

SMALL: Final = 12
"""Groups up to so many partitions are searched exhaustively …"""
STEPS: Final = 20_000
"""… within so many steps."""
DEVIATIONS: Final = (1.0, 2.0, 3.0)
"""Headroom that is tried …"""
HALVINGS: Final = 6
"""In the search for the level of so many replicas: to within 1/64."""
LEAST_FILL: Final = 0.3
"""… as long as a replica may still be planned to hold this share of its capacity."""


def proposals(now: Situation) -> Iterator[Proposal]:
    """Yield the present plan where it is one, then plans with few moves.

    Partitions are packed twice: by what will arrive, and by what waits where that is the tighter of the two.
    """
    replicas = len(now.rates)
    stay = Proposal(now.owners, tuple(range(replicas)))
    may_stay = replicas > 0 and bool((now.owners >= 0).all())
    if may_stay:
        yield stay
    time_left_s = max(now.slot_s, now.target_s - now.slot_s)
    urgent = np.maximum(now.sizes, now.waiting.sum(axis=0) * (now.capacity / (now.typical_rate * time_left_s)))
    pressed = not may_stay or late_under(now, stay) > NEGLIGIBLE
    packings = [(now.sizes, limit) for limit in _limits(now)]
    if pressed and (urgent > now.sizes).any():
        packings.append((urgent, now.capacity))
    for sizes, limit in packings:
        _, fewest = best_fit(sizes, limit, len(sizes))
        near = {fewest - 1, fewest, fewest + 1} if len(sizes) <= SMALL else {fewest}
        for count in sorted(near | {replicas}):
            if 1 <= count <= len(sizes):
                placed = _placed(now, sizes, limit, count)
                yield placed
                if (direct := _direct(now, sizes, limit, placed)) is not None:
                    yield direct
                if pressed and limit == now.capacity:
                    yield _placed(now, sizes, _level(sizes, count), count)


def needed(now: Situation, more: float) -> int:
    """Return the fewest replicas that can serve `more` events per interval than are planned for, shared out alike."""
    total = now.sizes.sum()
    grown = now.sizes * (1 + more / total) if total > 0 else now.sizes + more / len(now.sizes)
    return best_fit(grown, now.capacity, len(grown))[1]


def _level(sizes: Floats, count: int) -> float:
    """Return about the least that the fullest of so many replicas can hold."""
    low = max(float(sizes.max()), float(sizes.sum()) / count)
    high = 2 * low
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if best_fit(sizes, middle, len(sizes))[1] <= count:
            high = middle
        else:
            low = middle
    return high * (1 + ROUNDING)


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


def _placed(now: Situation, sizes: Floats, limit: float, count: int) -> Proposal:
    """Return the plan with `count` replicas that moves least; where not everything fits, the fullest are left so."""
    replicas = len(now.rates)
    rates = rates_of(now, range(max(replicas, count)))
    capacities = limit * rates / now.typical_rate
    weights = now.sizes + NEGLIGIBLE + np.where(now.in_handover_s > 0, STUCK, 0.0)
    if len(sizes) <= SMALL:
        owners, fits = fewest_moves(sizes, weights, now.owners, capacities, count, STEPS)
        if fits:
            holding = sorted(set(owners.tolist()))
            spare = [one for one in range(len(rates)) if one not in holding]
            return Proposal(owners, tuple(sorted(holding + spare[: count - len(holding)])))
    closed = np.zeros(len(rates), np.int64)
    if count < replicas:
        owned = now.owners >= 0
        held = np.bincount(now.owners[owned], weights[owned], minlength=len(rates))
        closed[np.argsort(held, kind="stable")[: replicas - count]] = 1
    owners, _ = relieved(sizes, now.owners, capacities, closed)
    return Proposal(owners, tuple(np.flatnonzero(closed == 0).tolist()))


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
    load = np.bincount(owners, sizes, minlength=max(fresh) + 1)
    for partition in chained[np.argsort(-sizes[chained], kind="stable")].tolist():
        least = min(fresh, key=lambda one: float(load[one]))
        if load[least] + sizes[partition] <= limit * (1 + ROUNDING):
            load[least] += sizes[partition]
            owners[partition] = least
    return Proposal(owners, placed.replicas)
