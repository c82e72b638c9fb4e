"""Names bins after replicas so that the partitions that change their owner have the least total arrival rate."""

from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from heapq import heappop, heappush
from itertools import accumulate, chain, count
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from autoscaler.jit import compiled
from autoscaler.packing.bins import Bin

Numbers = NDArray[np.int64]
NONE: Final = -1
RATE_UNITS: Final = 1_000_000
"""Units per event/s. Integers add exactly, so rounding does not influence the best matching."""


class Overlap(NamedTuple):
    """Rate that stays with its owner if a bin gets a name. One entry for each bin and name that share a partition.

    The entries of bin b are starts[b] … starts[b + 1] − 1. Weights are integers, so sums are exact.
    """

    starts: Numbers
    names: Numbers
    """Number of the name of each entry."""
    weights: Numbers


def name_bins(bins: Sequence[Bin], owners: Mapping[int, str], names: Sequence[str], prefix: str) -> tuple[str, ...]:
    """Return one replica name for each bin, all different.

    owners: partition → its present owner. An owner that is not in `names` is gone.
    names: replicas that may stay, preferred first. Further bins get `prefix`-<smallest unused ordinal>.
    The total rate of the partitions that stay with their owner is maximal (to a millionth of an event/s). Ties: as many
    partitions as possible stay.
    """
    numbers = {name: number for number, name in enumerate(names)}
    best = best_matching(_overlap(bins, owners, numbers), len(names)).tolist()
    kept = {names[number] for number in best if number != NONE}
    spare = chain((name for name in names if name not in kept), fresh_names(prefix, {*names, *owners.values()}))
    return tuple(next(spare) if number == NONE else names[number] for number in best)


def fresh_names(prefix: str, taken: set[str]) -> Iterator[str]:
    """Yield `prefix`-0, `prefix`-1, … without those already taken."""
    return (name for ordinal in count() if (name := f"{prefix}-{ordinal}") not in taken)


def round_robin(replicas: Sequence[str], partitions: int) -> dict[int, str]:
    """Return owners with about equal numbers of partitions, for a group whose load is not known yet."""
    return {partition: replicas[partition % len(replicas)] for partition in range(partitions)}


def count_moves(before: Mapping[int, str] | None, after: Mapping[int, str] | None) -> int:
    """Count the partitions that change their owner; 0 if `before` or `after` is None (the group places partitions)."""
    known = before or {}
    return sum(known.get(partition, owner) != owner for partition, owner in (after or {}).items())


def spread(
    owners: MutableMapping[int, str],
    unowned: Iterable[int],
    replicas: Sequence[str],
    room: Mapping[str, int] | None = None,
    rates: Mapping[int, float] = {},
) -> None:
    """Add each partition of `unowned` to `owners`, at the replica with the least load. Ties go to the first replica.

    room: maximum number of partitions of each replica, if `rates` is empty; None: no maximum.
    rates: partition → arrival rate, events/s. A partition without a rate counts as their mean. Empty: each counts as 1.
    """
    mean = sum(rates.values()) / max(1, len(rates)) or 1.0
    load = dict.fromkeys(replicas, 0.0)
    for partition, name in owners.items():
        if name in load:
            load[name] += rates.get(partition, mean)
    for partition in unowned:
        candidates = replicas if room is None else [name for name in replicas if load[name] < room[name]]
        owners[partition] = owner = min(candidates, key=load.__getitem__)
        load[owner] += rates.get(partition, mean)


def _overlap(bins: Sequence[Bin], owners: Mapping[int, str], numbers: Mapping[str, int]) -> Overlap:
    shared: list[dict[int, int]] = []
    for bin_ in bins:
        stays: dict[int, int] = {}
        for item in bin_.items:
            number = numbers.get(owners.get(item.partition, ""))
            if number is not None:
                # one unit for the handover itself: moving an idle partition has a cost, too
                stays[number] = stays.get(number, 0) + round(item.arrival_rate * RATE_UNITS) + 1
        shared.append(stays)
    return Overlap(
        np.array([0, *accumulate(map(len, shared))], np.int64),
        np.array([number for stays in shared for number in stays], np.int64),
        np.array([weight for stays in shared for weight in stays.values()], np.int64),
    )


class Search(NamedTuple):
    """Shortest path from the entering bin to each name. Values of earlier searches are ignored."""

    seen_in: Numbers
    """Entering bin of the last search that reached the name."""
    distance: Numbers
    entry: Numbers
    """Entry of the overlap by which the path reaches the name."""


@compiled
def _cheapest_path(
    overlap: Overlap, entering: int, worth: Numbers, price: Numbers, holder: Numbers, search: Search
) -> tuple[int, int]:
    """Find the path of one bin (Dijkstra) and update worths and prices.

    Returns the entry by which it ends at a free name, or NONE and the bin that stays without a name.
    """
    passed = [np.int64(0) for _ in range(0)]
    waiting = [(np.int64(0), np.int64(0)) for _ in range(0)]
    at, current = np.int64(0), entering
    last_entry, giving_up, cost = NONE, entering, worth[entering]
    while True:
        if at + worth[current] < cost:
            giving_up, cost = current, at + worth[current]
        for entry in range(overlap.starts[current], overlap.starts[current + 1]):
            name = overlap.names[entry]
            to = at + worth[current] + price[name] - overlap.weights[entry]
            if search.seen_in[name] != entering or to < search.distance[name]:
                search.seen_in[name], search.distance[name], search.entry[name] = entering, to, entry
                heappush(waiting, (to, name))
        name = NONE
        while waiting and name == NONE:
            at, name = heappop(waiting)
            if at > search.distance[name]:
                name = NONE  # a shorter path has been found since
        if name == NONE or at >= cost:
            break
        if holder[name] == NONE:
            last_entry, cost = search.entry[name], at
            break
        passed.append(name)
        current = holder[name]
    worth[entering] -= cost
    for name in passed:
        price[name] += cost - search.distance[name]
        worth[holder[name]] -= cost - search.distance[name]
    return last_entry, giving_up


@compiled
def best_matching(overlap: Overlap, count: int) -> Numbers:
    """Return the name of each bin so that the total weight is maximal; NONE for a bin without a name.

    count: number of names. This is the Hungarian method on a sparse graph. Bins enter one by one. Each takes the
    cheapest alternating path to a free name, or to a bin that then remains without a name. For each bin and name, the
    worth of the bin plus the price of the name is at least their weight, and equal to it if they are matched.
    """
    bins = overlap.starts.size - 1
    bin_of = np.repeat(np.arange(bins), overlap.starts[1:] - overlap.starts[:-1])
    entry_of = np.full(bins, NONE)  # the entry of the overlap that matches a bin
    holder = np.full(count, NONE)
    worth, price = np.zeros(bins, np.int64), np.zeros(count, np.int64)
    search = Search(np.full(count, NONE), np.zeros(count, np.int64), np.zeros(count, np.int64))
    for entering in range(bins):
        for entry in range(overlap.starts[entering], overlap.starts[entering + 1]):
            worth[entering] = max(worth[entering], overlap.weights[entry] - price[overlap.names[entry]])
        entry, giving_up = _cheapest_path(overlap, entering, worth, price, holder, search)
        taker = giving_up if entry == NONE else bin_of[entry]
        while True:  # swap along the path, beginning at its end
            given_up, entry_of[taker] = entry_of[taker], entry
            if entry != NONE:
                holder[overlap.names[entry]] = taker
            if given_up == NONE:
                break
            entry = search.entry[overlap.names[given_up]]
            taker = bin_of[entry]
    names = np.full(bins, NONE)
    for index in range(bins):
        if entry_of[index] != NONE:
            names[index] = overlap.names[entry_of[index]]
    return names
