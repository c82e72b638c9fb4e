"""The plans that could follow, each with what it would cost: replicas for a while, and events that would be late."""

from collections.abc import Iterator, Sequence
from math import sqrt
from typing import Final

import numpy as np
from numpy.typing import NDArray

from autoscaler.packing.few_moves import best_fit, fewest_moves, relieved
from autoscaler.policies.tail_aware.prediction import late_events
from autoscaler.policies.tail_aware.situation import Candidate, Situation

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SMALL: Final = 12
"""Groups up to so many partitions are searched exhaustively …"""
STEPS: Final = 20_000
"""… within so many steps."""
DEVIATIONS: Final = (1.0, 2.0, 3.0)
"""Headroom that is tried …"""
LEAST_FILL: Final = 0.3
"""… as long as a replica may still be planned to hold this share of its capacity."""
HALVINGS: Final = 12
"""In the search for a replica's capacity: to within 1/4096 of μ."""
ROUNDING: Final = 1e-3
"""Relative; the capacity is not known better."""
NEGLIGIBLE: Final = 1e-6
"""Events."""
STUCK: Final = 1e9
"""Weight of a partition whose handover is under way: to move it again would begin its pause anew."""


def candidates(now: Situation) -> Iterator[Candidate]:
    """Yield what could be done: nothing, or so many replicas with as few moves as possible.

    Partitions are packed twice: by what will arrive, and by what waits where that is the tighter of the two.
    """
    replicas = len(now.rates)
    capacity = capacity_of(now)
    stay = None
    if replicas and (now.owners >= 0).all():
        stay = _judged(now, now.owners, range(replicas), capacity)
        yield stay
    time_left_s = max(now.slot_s, now.target_s - now.slot_s)
    urgent = np.maximum(now.sizes, now.waiting.sum(axis=0) * (capacity / (now.typical_rate * time_left_s)))
    pressed = stay is None or stay.late > NEGLIGIBLE
    packings = [(now.sizes, limit) for limit in _limits(now, capacity)]
    if pressed and (urgent > now.sizes).any():
        packings.append((urgent, capacity))
    for sizes, limit in packings:
        _, fewest = best_fit(sizes, limit, len(sizes))
        near = {fewest - 1, fewest, fewest + 1} if len(sizes) <= SMALL else {fewest}
        for count in sorted(near | {replicas}):
            if 1 <= count <= len(sizes):
                placed = _placed(now, sizes, limit, count, capacity)
                yield placed
                direct = _direct(now, sizes, limit, placed)
                if direct is not None:
                    yield _judged(now, direct, placed.replicas, capacity)


def needed(now: Situation, more: float) -> int:
    """Return the fewest replicas that can serve `more` events per interval than are planned for, shared out alike."""
    total = now.sizes.sum()
    grown = now.sizes * (1 + more / total) if total > 0 else now.sizes + more / len(now.sizes)
    return best_fit(grown, capacity_of(now), len(grown))[1]


def late_for_certain(now: Situation, chosen: Candidate) -> float:
    """Return how many of the events that arrived in the last interval will be late under `chosen`."""
    slots = len(now.shape)
    before = now.waiting.copy()
    before[-slots:] = 0.0
    with_them = _late(now, chosen.owners, chosen.replicas, now.waiting, now.expected[:0], 0 * now.variance)
    without = _late(now, chosen.owners, chosen.replicas, before, now.expected[:0], 0 * now.variance)
    return max(0.0, with_them - without)


def capacity_of(now: Situation) -> float:
    """Return how many events per interval a typical replica serves in time, interval after interval, in their shape.

    Between μ·W (all at once) and μ·interval (evenly).
    """
    thrice = np.concatenate((now.shape, now.shape, now.shape))[:, None]
    none, zero, first = np.zeros((1, 1)), np.zeros(1), np.zeros(1, np.int64)
    rate = np.array([now.typical_rate])

    def in_time(size: float) -> bool:
        late = late_events(none, thrice * size, zero, first, first, zero, zero, rate, now.slot_s, now.target_s)
        return float(late[0]) <= NEGLIGIBLE

    low, high = 0.0, now.typical_rate * now.interval_s
    if in_time(high):
        return high
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if in_time(middle) else (low, middle)
    return max(low, NEGLIGIBLE)


def _limits(now: Situation, capacity: float) -> Iterator[float]:
    """Yield what a replica may be planned to hold: all of its capacity, then less, where arrivals are uncertain.

    Room is left for so many standard deviations of what a full replica gets.
    """
    yield capacity
    total = now.sizes.sum()
    dispersion = now.variance.sum() / total if total > 0 else 0.0
    for deviations in DEVIATIONS:
        limit = capacity - deviations * sqrt(dispersion * capacity)
        if capacity * LEAST_FILL < limit < capacity * 0.995:
            yield limit


def _placed(now: Situation, sizes: Floats, limit: float, count: int, capacity: float) -> Candidate:
    """Return the plan with `count` replicas that moves least; where not everything fits, the fullest are left so."""
    replicas = len(now.rates)
    rates = _rates(now, range(max(replicas, count)))
    capacities = limit * rates / now.typical_rate
    weights = now.sizes + NEGLIGIBLE + np.where(now.in_handover_s > 0, STUCK, 0.0)
    if len(sizes) <= SMALL:
        owners, fits = fewest_moves(sizes, weights, now.owners, capacities, count, STEPS)
        if fits:
            holding = sorted(set(owners.tolist()))
            spare = [one for one in range(len(rates)) if one not in holding]
            return _judged(now, owners, sorted(holding + spare[: count - len(holding)]), capacity)
    closed = np.zeros(len(rates), np.int64)
    if count < replicas:
        owned = now.owners >= 0
        held = np.bincount(now.owners[owned], weights[owned], minlength=len(rates))
        closed[np.argsort(held, kind="stable")[: replicas - count]] = 1
    owners, _ = relieved(sizes, now.owners, capacities, closed)
    return _judged(now, owners, np.flatnonzero(closed == 0).tolist(), capacity)


def _direct(now: Situation, sizes: Floats, limit: float, placed: Candidate) -> Ints | None:
    """Return the same with moves between present replicas led to the new ones instead where there is room; else None.

    A present replica has its heir's partitions at once, and keeps its own until the new one has started: chains crowd.
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
    return owners


def _judged(now: Situation, owners: Ints, replicas: Sequence[int], capacity: float) -> Candidate:
    moves = owners != now.owners
    late = _late(now, owners, replicas, now.waiting, now.expected, now.variance)
    coming = sum(one >= len(now.rates) for one in replicas)
    again = float(np.count_nonzero(moves & (now.in_handover_s > 0))) * STUCK
    cost = (
        len(replicas) * now.paid_s + coming * now.start_price_s + now.late_price_s * late * now.scarcity(late) + again
    )
    cost += now.move_price_s * np.count_nonzero(moves) + NEGLIGIBLE * float(now.sizes[moves].sum())
    return Candidate(
        owners,
        tuple(replicas),
        late,
        _lasts(now, owners, replicas, capacity),
        int(np.count_nonzero(moves)),
        float(cost),
    )


def _lasts(now: Situation, owners: Ints, replicas: Sequence[int], capacity: float) -> bool:
    """Tell whether every replica with more than one partition can serve what they bring."""
    rates = _rates(now, replicas)
    load = np.bincount(owners, now.sizes, minlength=len(rates))
    shared = np.bincount(owners, minlength=len(rates)) > 1
    return bool((load <= capacity * rates / now.typical_rate * (1 + ROUNDING))[shared].all())


def _late(  # noqa: PLR0917  the same six every time
    now: Situation, owners: Ints, replicas: Sequence[int], waiting: Floats, expected: Floats, variance: Floats
) -> float:
    switch_s = np.where(owners >= len(now.rates), now.start_s, 0.0)
    ready_s = np.where(owners == now.owners, now.in_handover_s, switch_s + now.pause_s)
    rates = _rates(now, replicas)
    slot_s, target_s = now.slot_s, now.target_s
    return float(
        late_events(waiting, expected, variance, now.owners, owners, switch_s, ready_s, rates, slot_s, target_s).sum()
    )


def _rates(now: Situation, replicas: Sequence[int]) -> Floats:
    """Return μ by replica, new ones included."""
    rates = np.full(max(len(now.rates), max(replicas, default=-1) + 1), now.typical_rate)
    rates[: len(now.rates)] = now.rates
    return rates
