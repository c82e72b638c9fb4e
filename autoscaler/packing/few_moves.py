"""Finds assignments with few moves for a given number of replicas. A partition moves only if it would not fit.

Sizes and capacities are events per interval. A partition that exceeds every capacity gets a replica of its own if one
is empty, because nothing else would help it.
"""

from typing import Final

import numpy as np

from autoscaler.jit import Flags, Floats, Ints, compiled
from autoscaler.packing.least_loaded import fill_level

ROUNDING: Final = 1e-9
"""Relative tolerance of the capacity, so that rounding does not make a bin overfull."""
SEARCHED: Final = 12
"""Most partitions for which `place_on` searches the fewest moves, in at most SEARCH_STEPS."""
SEARCH_STEPS: Final = 20_000
SLACKS: Final = (0.0, 0.1, 0.3)
"""Room of a replica above the lowest possible fill level. More room needs fewer moves."""


@compiled
def _tightest(room: Floats, in_use: Flags, size: float, capacities: Floats) -> int:
    """Return the replica in use with the least room that still fits `size`, on ties the first; −1 if there is none."""
    best = -1
    for replica in range(len(room)):
        fits = room[replica] >= size - ROUNDING * capacities[replica]
        if in_use[replica] and fits and (best < 0 or room[replica] < room[best]):
            best = replica
    return best


@compiled
def relieved(sizes: Floats, order: Ints, owners: Ints, capacities: Floats, closed: Ints) -> tuple[Ints, bool]:
    """Return owners after the fewest moves that a greedy search finds, and whether everything fits.

    order: the largest first. owners: replica of each partition, −1 for none. closed: 1 for replicas that must be
    empty afterwards.
    An overfull replica loses its smallest partition whose removal is enough, or else its largest, until it fits. If one
    partition exceeds the capacity, all others leave. Partitions without an owner go, largest first, to the replica
    with the least room in which they fit; if there is none, to the replica with the most room.
    """
    partitions, replicas = len(sizes), len(capacities)
    placed, room, held = owners.copy(), capacities.copy(), np.zeros(replicas, np.int64)
    for partition in range(partitions):
        owner = placed[partition]
        if owner >= 0 and closed[owner] == 1:
            placed[partition] = -1
        elif owner >= 0:
            room[owner] -= sizes[partition]
            held[owner] += 1
    _make_room(sizes, order, placed, capacities, room, held)
    in_use = (closed == 0) & (held > 0)
    empty = np.flatnonzero((closed == 0) & (held == 0))
    fits = True
    for partition in order:
        if placed[partition] >= 0:
            continue
        best = _tightest(room, in_use, sizes[partition], capacities)
        for place in range(len(empty)):
            replica = int(empty[place])  # an empty replica takes even a partition that exceeds its capacity
            if held[replica] == 0 and (
                best < 0 or room[replica] < room[best] or (room[replica] == room[best] and replica < best)
            ):
                best = replica
        if best < 0:
            fits = False
            for replica in range(replicas):
                if closed[replica] == 0 and (best < 0 or room[replica] > room[best]):
                    best = replica
        placed[partition] = best
        room[best] -= sizes[partition]
        held[best] += 1
        in_use[best] = True
    return placed, fits


@compiled
def _make_room(sizes: Floats, order: Ints, placed: Ints, capacities: Floats, room: Floats, held: Ints) -> None:
    """Remove partitions from each overfull replica until it fits."""
    ends, own = np.cumsum(held), np.empty(len(sizes), np.int64)  # the partitions of each replica, largest first
    filled = ends - held
    for partition in order:
        if placed[partition] >= 0:
            own[filled[placed[partition]]] = partition
            filled[placed[partition]] += 1
    for replica in range(len(capacities)):
        first = ends[replica] - held[replica]
        while room[replica] < -ROUNDING * capacities[replica] and held[replica] > 1:
            while placed[own[first]] != replica:
                first += 1
            leaving = -1
            for place in range(first, ends[replica]):
                partition = own[place]
                if placed[partition] == replica and (sizes[partition] <= capacities[replica] or leaving < 0):
                    if leaving < 0 or sizes[leaving] > capacities[replica] or sizes[partition] >= -room[replica]:
                        leaving = partition
                    if sizes[partition] < -room[replica]:
                        break
            placed[leaving] = -1
            room[replica] += sizes[leaving]
            held[replica] -= 1


@compiled
def fewest_moves(
    sizes: Floats, order: Ints, weights: Floats, owners: Ints, capacities: Floats, limit: int, nodes: int
) -> tuple[Ints, bool]:
    """Return the owners that fit and move the least total weight, and whether such owners were found.

    At most `limit` replicas get partitions. The search is exhaustive, depth first, largest partition first. Empty
    replicas that owned nothing before are interchangeable, so it tries only one of them. After `nodes` steps it
    ends with the best result so far. order: the largest first. weights: cost of moving each partition.
    """
    partitions, replicas = len(sizes), len(capacities)
    room, held = capacities.copy(), np.zeros(replicas, np.int64)
    owned = np.bincount(owners + 1, None, replicas + 1)[1:]
    choice, cost = np.full(partitions, -1, np.int64), np.zeros(partitions + 1)
    best, best_cost, opened, depth = owners.copy(), np.inf, 0, 0
    while depth >= 0 and nodes > 0:
        nodes -= 1
        if depth == partitions:
            if cost[depth] < best_cost:
                best_cost, best[order] = cost[depth], choice
            depth -= 1
            continue
        partition, taken = order[depth], choice[depth]
        size = sizes[partition]
        if taken >= 0:
            room[taken] += size
            held[taken] -= 1
            opened -= held[taken] == 0
        following, own, spent = taken + 1, owners[partition], cost[depth]
        fresh_tried = False
        for replica in range(following):
            if held[replica] == 0 and owned[replica] == 0:
                fresh_tried = True
        choice[depth] = -1
        # all replicas but the present owner cost the same: too much for one is too much for all
        first, last = following, replicas
        if spent + weights[partition] >= best_cost:
            first, last = max(following, own), own + 1 if spent < best_cost else 0
        for replica in range(first, last):
            fresh = held[replica] == 0 and owned[replica] == 0
            if (fresh and fresh_tried) or (held[replica] == 0 and opened >= limit):
                continue
            if room[replica] < size - ROUNDING * capacities[replica] and held[replica] > 0:
                continue
            choice[depth] = replica
            room[replica] -= size
            opened += held[replica] == 0
            held[replica] += 1
            cost[depth + 1] = spent + (0.0 if own == replica else weights[partition])
            break
        depth += 1 if choice[depth] >= 0 else -1
    return best, best_cost < np.inf


@compiled
def place_on(
    count: int, sizes: Floats, order: Ints, weights: Floats, owners: Ints, capacities: Floats
) -> tuple[Ints, Flags]:
    """Return owners after few moves to `count` of the replicas, and which replicas are in use.

    If not all partitions fit, some replicas are overfull. order: the largest first. weights: cost of moving each one.
    """
    used = np.zeros(len(capacities), np.bool_)
    if len(sizes) <= SEARCHED:
        placed, fits = fewest_moves(sizes, order, weights, owners, capacities, count, SEARCH_STEPS)
        if fits:
            used[placed] = True
            used[np.flatnonzero(~used)[: count - np.count_nonzero(used)]] = True  # others without partitions
            return placed, used
    held, closed = np.bincount(owners + 1, weights, len(used) + 1)[1:], np.zeros(len(used), np.int64)
    closed[np.argsort(held, kind="mergesort")[: len(capacities) - count]] = 1
    return relieved(sizes, order, owners, capacities, closed)[0], closed == 0


@compiled
def add_plans(
    rows: Ints, loads: Floats, pinned: Floats, counts: Ints, owners: Ints, rates: Floats, present: int
) -> Ints:
    """Return the plans of `rows`, and others with few moves: each of the counts with each load and slack.

    A row has the owner of each partition, 1 for each replica in use, else 0, and their count. pinned: additional
    weights of partitions. owners: the present ones. rates: of the present replicas, then of new ones.
    """
    partitions, found = loads.shape[1], len(rows)
    made = np.zeros((found + len(loads) * len(counts) * len(SLACKS), rows.shape[1]), np.int64)
    made[:found] = rows
    for load in loads:
        order, weights = np.argsort(-load, kind="mergesort"), load + pinned
        for count in counts:
            end, level = partitions + max(present, count), fill_level(load[order], count)
            for slack in SLACKS:
                capacities = level * (1.001 + slack) * rates[: end - partitions] / rates[-1]
                placed, in_use = place_on(count, load, order, weights, owners, capacities)
                made[found, :partitions] = placed
                made[found, partitions:end] = in_use
                made[found, end:-1] = 0
                made[found, -1] = count
                is_new = True
                for row in made[:found]:
                    is_new &= row[-1] != count or (row != made[found]).any()
                found += is_new
    return made[:found]
