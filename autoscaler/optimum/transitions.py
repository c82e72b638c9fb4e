"""Service between two ticks: a label is extended to another placement of the partitions. The loops are compiled.

The work of a replica until the next tick follows from its partitions and its previous bin, so it is computed once per
label.
"""
# ruff: noqa: PLR0917  # compiled functions take numbers and arrays one by one, by position

from typing import NamedTuple

import numpy as np

from autoscaler.jit import compiled
from autoscaler.optimum.labels import Labels
from autoscaler.optimum.serving import BUSY, ELIGIBLE, FOLLOWING, FREE, NONE, Ints, Load, Prices, serve


class States(NamedTuple):
    """All allowed placements. Bins are numbered from 0, in the order of their first partitions."""

    member: Ints
    """Bin of each partition, shape (states, partitions)."""
    replicas: Ints
    """Paid replicas. Those beyond the bins are idle."""


class Served(NamedTuple):
    """Service until the next tick, by partitions (bit mask) and previous bin + 1 (0: another replica)."""

    label: Ints
    late: Ints
    """Late events; -1: one is late and none may be."""
    at: Ints
    """As `Labels.at`. The time at which the replica is free is in row FREE, place 0."""


class Bins(NamedTuple):
    """Partitions of the bins, in forms for fast access."""

    mask: Ints
    """Partitions of each bin as bits, shape (states, bins)."""
    bin_count: Ints
    """Number of bins of each state."""
    partitions: Ints
    """Partitions of each mask, in the first `size` places."""
    size: Ints


class Constants(NamedTuple):
    """Constants of a search."""

    load: Load
    prices: Prices
    states: States
    bins: Bins
    edges: Ints
    """Times at which placements may change, µs, and NEVER."""


@compiled
def bins_of(states: States) -> Bins:
    """Return the partitions of the bins of all states."""
    count, partitions = states.member.shape
    bins = Bins(
        np.zeros((count, partitions), np.int64),
        np.zeros(count, np.int64),
        np.zeros((1 << partitions, partitions), np.int64),
        np.zeros(1 << partitions, np.int64),
    )
    for state in range(count):
        for partition in range(partitions):
            bins.mask[state, states.member[state, partition]] |= 1 << partition
        bins.bin_count[state] = states.member[state].max() + 1
    for mask in range(1 << partitions):
        for partition in range(partitions):
            if mask >> partition & 1:
                bins.partitions[mask, bins.size[mask]] = partition
                bins.size[mask] += 1
    return bins


@compiled
def serve_all(
    const: Constants, now: Labels, state: int, path_: int, target: int, tick: int, served: Served, label: int
) -> None:
    """Compute the service of each bin of `target` after one label, unless it is known."""
    states, bins = const.states, const.bins
    begin_us, end_us = const.edges[tick], const.edges[tick + 1]
    for bin_ in range(bins.bin_count[target]):
        mask = bins.mask[target, bin_]
        for old in range(-1, bins.bin_count[state]):
            at = old + 1
            if served.label[mask, at] == label or (old >= 0 and not mask & bins.mask[state, old]):
                continue
            served.label[mask, at] = label
            then = served.at[mask, at]
            then[:] = now.at[state, path_]
            for partition in range(states.member.shape[1]):
                if mask >> partition & 1 and states.member[state, partition] != old:
                    then[ELIGIBLE, partition] = max(begin_us, then[BUSY, partition]) + const.prices.pause_us
            free_us = now.at[state, path_, FREE, old] if old >= 0 else begin_us
            of = bins.partitions[mask, : bins.size[mask]]
            served.late[mask, at], then[FREE, 0] = serve(const.load, const.prices, of, begin_us, end_us, free_us, then)


@compiled
def match_bins(bins: Bins, state: int, target: int, end_us: int, served: Served, tried: Ints, previous: Ints) -> int:
    """Find the previous bins of the bins of `target`: fewest late events, then most served, then shortest pauses.

    previous: takes the result. Returns the late events; -1: some are late and none may be.
    """
    fewest, most, least_us = -1, 0, 0
    tried[:] = NONE
    place = 0
    while place < bins.bin_count[target]:
        claimed, late, progress, pause_us = 0, 0, 0, 0
        for bin_ in range(bins.bin_count[target]):
            mask, old = bins.mask[target, bin_], tried[bin_]
            if old >= 0 and (claimed >> old & 1 or not mask & bins.mask[state, old]):
                late = -1
                break
            if served.late[mask, old + 1] < 0:
                late = -1
                break
            claimed |= 1 << old if old >= 0 else 0
            late += served.late[mask, old + 1]
            for partition in bins.partitions[mask, : bins.size[mask]]:
                progress += served.at[mask, old + 1, FOLLOWING, partition]
                pause_us += max(0, served.at[mask, old + 1, ELIGIBLE, partition] - end_us)
            pause_us += max(0, served.at[mask, old + 1, FREE, 0] - end_us)
            pause_us += old == NONE  # a tie: the present replica stays
        better = late < fewest or (late == fewest and (progress > most or (progress == most and pause_us < least_us)))
        if late >= 0 and (fewest < 0 or better):
            fewest, most, least_us = late, progress, pause_us
            previous[:] = tried
        place = 0
        while place < bins.bin_count[target]:
            tried[place] += 1
            if tried[place] < bins.bin_count[state]:
                break
            tried[place] = NONE
            place += 1
    return fewest


@compiled
def best_of_all(bins: Bins, state: int, target: int, served: Served, made: Labels, previous: Ints) -> int:
    """Fill `made` with the best value of any previous bin for each bin of `target`. Return the late events, or -1."""
    late = 0
    previous[:] = NONE
    for bin_ in range(bins.bin_count[target]):
        mask, fewest = bins.mask[target, bin_], -1
        for old in range(-1, bins.bin_count[state]):
            at = old + 1
            if (old >= 0 and not mask & bins.mask[state, old]) or served.late[mask, at] < 0:
                continue
            new = fewest < 0
            fewest = served.late[mask, at] if new else min(fewest, served.late[mask, at])
            mine, its = made.at[0, 0], served.at[mask, at]
            mine[FREE, bin_] = its[FREE, 0] if new else min(mine[FREE, bin_], its[FREE, 0])
            for partition in bins.partitions[mask, : bins.size[mask]]:
                if new:
                    mine[:FREE, partition] = its[:FREE, partition]
                mine[FOLLOWING, partition] = max(mine[FOLLOWING, partition], its[FOLLOWING, partition])
                mine[BUSY, partition] = min(mine[BUSY, partition], its[BUSY, partition])
                mine[ELIGIBLE, partition] = min(mine[ELIGIBLE, partition], its[ELIGIBLE, partition])
        if fewest < 0:
            return -1
        late += fewest
    return late


@compiled
def extend(
    const: Constants,
    now: Labels,
    state: int,
    path_: int,
    target: int,
    tick: int,
    served: Served,
    previous: Ints,
    made: Labels,
) -> int:
    """Fill `made` with the service of the replicas, given their previous bins. Return the cost of removed replicas."""
    bins, begin_us, claimed, rest_us = const.bins, const.edges[tick], 0, 0
    for bin_ in range(bins.bin_count[target]):
        mask, at = bins.mask[target, bin_], previous[bin_] + 1
        claimed |= 1 << previous[bin_] if at else 0
        made.at[0, 0, FREE, bin_] = served.at[mask, at, FREE, 0]
        for partition in bins.partitions[mask, : bins.size[mask]]:
            made.at[0, 0, :FREE, partition] = served.at[mask, at, :FREE, partition]
    for old in range(bins.bin_count[state]):
        if not claimed >> old & 1:
            rest_us += max(0, min(now.at[state, path_, FREE, old], const.prices.until_us) - begin_us)
    return rest_us
