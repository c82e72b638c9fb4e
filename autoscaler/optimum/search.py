"""Finds the cheapest sequence of placements by dynamic programming over the ticks of a run. The loops are compiled.

A *state* is a placement and the number of paid replicas. A *label* is a path to a state, with the queues at its end. At
each tick each label is extended to each state. Replicas serve as in the simulator: in the order of event numbers, after
the event in service. A partition that changes its replica pauses. The work of a replica until the next tick follows
from its partitions and its previous bin, so it is computed once per label.
"""
# ruff: noqa: PLR0917  # compiled functions take numbers and arrays one by one, by position

from typing import NamedTuple

import numpy as np

from autoscaler.jit import compiled
from autoscaler.optimum.labels import DOMINATED, Labels, best_label, keep_label, labels_for
from autoscaler.optimum.serving import BUSY, ELIGIBLE, FOLLOWING, FREE, NEVER, NONE, Ints, Load, Prices, serve


class States(NamedTuple):
    """All allowed placements. Bins are numbered from 0, in the order of their first partitions."""

    member: Ints
    """Bin of each partition, shape (states, partitions)."""
    replicas: Ints
    """Paid replicas. Those beyond the bins are idle."""


class _Served(NamedTuple):
    """Service until the next tick, by partitions (bit mask) and previous bin + 1 (0: another replica)."""

    label: Ints
    late: Ints
    """Late events; -1: one is late and none may be."""
    at: Ints
    """As `Labels.at`. The time at which the replica is free is in row FREE, place 0."""


class _Bins(NamedTuple):
    """Partitions of the bins, in forms for fast access."""

    mask: Ints
    """Partitions of each bin as bits, shape (states, bins)."""
    bin_count: Ints
    """Number of bins of each state."""
    partitions: Ints
    """Partitions of each mask, in the first `size` places."""
    size: Ints


class _Constants(NamedTuple):
    """Constants of a search."""

    load: Load
    prices: Prices
    states: States
    bins: _Bins
    edges: Ints
    """Times at which placements may change, µs, and NEVER."""


@compiled
def _bins(states: States) -> _Bins:
    count, partitions = states.member.shape
    bins = _Bins(
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
def _serve_all(
    const: _Constants, now: Labels, state: int, path_: int, target: int, tick: int, served: _Served, label: int
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
def _match_bins(bins: _Bins, state: int, target: int, end_us: int, served: _Served, tried: Ints, previous: Ints) -> int:
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
def _best_of_all(bins: _Bins, state: int, target: int, served: _Served, made: Labels, previous: Ints) -> int:
    """Fill `made` with the best value of any previous bin for each bin of `target`. Return the least late, or -1."""
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
def _begin(const: _Constants, initial: int, now: Labels) -> bool:
    """Create the label of the first tick. Return whether the SLO can still be met."""
    prices, bins, first_us = const.prices, const.bins, const.edges[0]
    now.paths[initial] = 1
    first = now.at[initial, 0]
    first[FOLLOWING] = const.load.first[:-1]
    for bin_ in range(bins.bin_count[initial]):
        mask = bins.mask[initial, bin_]
        of = bins.partitions[mask, : bins.size[mask]]
        late, first[FREE, bin_] = serve(const.load, prices, of, 0, first_us, 0, first)
        if late < 0:
            return False
        now.late[initial, 0] += late
    now.value[initial, 0] = const.states.replicas[initial] * first_us + prices.late_us * now.late[initial, 0]
    return True


@compiled
def _extend(
    const: _Constants,
    now: Labels,
    state: int,
    path_: int,
    target: int,
    tick: int,
    served: _Served,
    previous: Ints,
    made: Labels,
) -> int:
    """Fill `made` with the service of the replicas, given their previous bins. Return the cost of leaving ones."""
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


@compiled
def search(  # noqa: PLR0912, PLR0915  one loop over ticks, labels and states; parts that are not it are above
    load: Load, states: States, ticks: Ints, prices: Prices, initial: int, keep: int, optimistic: bool
) -> tuple[int, int, Ints, Ints]:
    """Return (value, late, path, kept) of the cheapest schedule. Value -1: none meets the SLO.

    ticks: times at which placements may change, µs.
    initial: state before the first tick. keep: maximum number of labels of a state. optimistic: surplus labels and
    several possible previous bins are merged into a label at least as good as each. The value is then a lower bound.
    value: replica-µs, including the price of late events. path: state from each tick on. kept: previous bin of each
    bin's replica, shape (ticks, partitions); NONE: another replica.
    """
    count, partitions = states.member.shape
    event_us = int(load.take.mean()) if len(load.take) else 0
    bins = _bins(states)
    const = _Constants(load, prices, states, bins, np.append(ticks, NEVER))
    now, then = labels_for(count, keep, partitions), labels_for(count, keep, partitions)
    made = labels_for(1, 1, partitions)
    wide = (1 << partitions, partitions + 1)
    served = _Served(np.full(wide, -1), np.zeros(wide, np.int64), np.zeros((*wide, 4, partitions), np.int64))
    before = np.zeros((len(ticks), count, keep), np.int32)
    previous_at = np.full((len(ticks), count, keep, partitions), NONE, np.int8)
    tried, previous = np.zeros(partitions, np.int64), np.zeros(partitions, np.int64)
    path = np.zeros(len(ticks), np.int64)
    kept = np.full((len(ticks), partitions), NONE, np.int64)
    if not _begin(const, initial, now):
        return -1, 0, path, kept

    label = 0
    for tick in range(len(ticks)):
        begin_us, end_us = const.edges[tick], const.edges[tick + 1]
        paid_us = min(prices.until_us, end_us) - begin_us
        then.paths[:] = 0
        for carried in range(count * keep):
            state, path_ = carried // keep, carried % keep
            if path_ >= now.paths[state]:
                continue
            label += 1
            for target in range(count):
                more = states.replicas[target] - states.replicas[state]
                value = now.value[state, path_] + states.replicas[target] * paid_us + max(0, more) * prices.startup_us
                too_soon = more > 0 and prices.startup_us and begin_us - prices.startup_us < ticks[0]
                beaten = keep == 1 and then.paths[target] and then.value[target, 0] <= value
                if too_soon or (beaten and not optimistic):
                    continue
                _serve_all(const, now, state, path_, target, tick, served, label)
                if optimistic:
                    late = _best_of_all(bins, state, target, served, made, previous)
                else:
                    late = _match_bins(bins, state, target, end_us, served, tried, previous)
                if late < 0:
                    continue
                if not optimistic:
                    rest_us = _extend(const, now, state, path_, target, tick, served, previous, made)
                    value += rest_us if more < 0 else 0
                made.value[0, 0] = value + prices.late_us * late
                made.late[0, 0] = now.late[state, path_] + late
                to = keep_label(then, target, made, end_us, event_us, optimistic)
                if to != DOMINATED:
                    before[tick, target, to] = carried
                    previous_at[tick, target, to] = previous
        now, then = then, now

    state, path_ = best_label(now)
    if state == NONE:
        return -1, 0, path, kept
    value, late = now.value[state, path_], now.late[state, path_]
    for tick in range(len(ticks) - 1, -1, -1):
        path[tick] = state
        kept[tick] = previous_at[tick, state, path_]
        state, path_ = before[tick, state, path_] // keep, before[tick, state, path_] % keep
    return value, late, path, kept
