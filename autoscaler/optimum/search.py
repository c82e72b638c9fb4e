"""Dynamic programming over the ticks of a run: which placements, one after another, cost least. Compiled.

A *state* is a placement and the replicas paid for. A *label* is one way to have come to a state, and where it leaves
the queues. From tick to tick each label is carried into each state. Replicas serve as the simulator's do: in the order
of numbers, what is in service is finished first, and a partition that changes its replica pauses. What a replica does
until the next tick follows from its partitions and from which replica it was, so that is computed once for a label.
"""
# ruff: noqa: PLR0917  # compiled functions take numbers and arrays one by one, by position

from typing import NamedTuple

import numpy as np

from autoscaler.jit import compiled
from autoscaler.optimum.labels import DOMINATED, Labels, best_label, keep_label, labels_for
from autoscaler.optimum.serving import BUSY, ELIGIBLE, FOLLOWING, FREE, NEVER, NONE, Ints, Load, Prices, serve


class States(NamedTuple):
    """Every placement that may be chosen. Bins of one are numbered from 0, in the order of their first partitions."""

    member: Ints
    """Shape (states, partitions): the bin of each partition."""
    replicas: Ints
    """Paid for; more than bins: the others are idle."""


class _Served(NamedTuple):
    """What replicas do until the next tick. By partitions (bit mask) and by the bin before + 1; 0: another replica."""

    label: Ints
    late: Ints
    """-1: more than none, and none may be."""
    at: Ints
    """As the labels have it; when the replica is free is said of the bin before + 1, at place 0."""


class _Bins(NamedTuple):
    """Which partitions are in which bins, in ways that are quick to ask."""

    mask: Ints
    """By state and bin: its partitions, as bits."""
    many: Ints
    """By state: how many."""
    partitions: Ints
    """By mask: its partitions, in a row; `size` of them."""
    size: Ints


class _World(NamedTuple):
    """What does not change in a search."""

    load: Load
    prices: Prices
    states: States
    bins: _Bins
    edges: Ints
    """When placements may change, and NEVER."""


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
        bins.many[state] = states.member[state].max() + 1
    for mask in range(1 << partitions):
        for partition in range(partitions):
            if mask >> partition & 1:
                bins.partitions[mask, bins.size[mask]] = partition
                bins.size[mask] += 1
    return bins


@compiled
def _serve_all(
    world: _World, now: Labels, state: int, way: int, target: int, tick: int, served: _Served, label: int
) -> None:
    """Compute, where it is not yet known, what each bin of `target` would do after one label."""
    states, bins = world.states, world.bins
    begin_us, end_us = world.edges[tick], world.edges[tick + 1]
    for one in range(bins.many[target]):
        mask = bins.mask[target, one]
        for old in range(-1, bins.many[state]):
            at = old + 1
            if served.label[mask, at] == label or (old >= 0 and not mask & bins.mask[state, old]):
                continue
            served.label[mask, at] = label
            then = served.at[mask, at]
            then[:] = now.at[state, way]
            for partition in range(states.member.shape[1]):
                if mask >> partition & 1 and states.member[state, partition] != old:
                    then[ELIGIBLE, partition] = max(begin_us, then[BUSY, partition]) + world.prices.pause_us
            free_us = now.at[state, way, FREE, old] if old >= 0 else begin_us
            of = bins.partitions[mask, : bins.size[mask]]
            served.late[mask, at], then[FREE, 0] = serve(world.load, world.prices, of, begin_us, end_us, free_us, then)


@compiled
def _inherit(bins: _Bins, state: int, target: int, end_us: int, served: _Served, tried: Ints, heirs: Ints) -> int:
    """Find which bin of `state` each bin of `target` had best be: fewest late, most served, least time until all go on.

    heirs: takes it. Returns how many are late; -1: there is no way without.
    """
    fewest, most, least_us = -1, 0, 0
    tried[:] = NONE
    place = 0
    while place < bins.many[target]:
        claimed, late, progress, pause_us = 0, 0, 0, 0
        for one in range(bins.many[target]):
            mask, old = bins.mask[target, one], tried[one]
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
            pause_us += old == NONE  # a tie: who has been there stays
        better = late < fewest or (late == fewest and (progress > most or (progress == most and pause_us < least_us)))
        if late >= 0 and (fewest < 0 or better):
            fewest, most, least_us = late, progress, pause_us
            heirs[:] = tried
        place = 0
        while place < bins.many[target]:
            tried[place] += 1
            if tried[place] < bins.many[state]:
                break
            tried[place] = NONE
            place += 1
    return fewest


@compiled
def _hope(bins: _Bins, state: int, target: int, served: _Served, made: Labels, heirs: Ints) -> int:
    """Fill `made` with what is as good for each bin of `target` as any way to inherit; return the least late, or -1."""
    late = 0
    heirs[:] = NONE
    for one in range(bins.many[target]):
        mask, fewest = bins.mask[target, one], -1
        for old in range(-1, bins.many[state]):
            at = old + 1
            if (old >= 0 and not mask & bins.mask[state, old]) or served.late[mask, at] < 0:
                continue
            new = fewest < 0
            fewest = served.late[mask, at] if new else min(fewest, served.late[mask, at])
            mine, its = made.at[0, 0], served.at[mask, at]
            mine[FREE, one] = its[FREE, 0] if new else min(mine[FREE, one], its[FREE, 0])
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
def _begin(world: _World, initial: int, now: Labels) -> bool:
    """Set the one label of the first tick; return whether the promise can still be kept."""
    prices, bins, first_us = world.prices, world.bins, world.edges[0]
    now.ways[initial] = 1
    first = now.at[initial, 0]
    first[FOLLOWING] = world.load.first[:-1]
    for one in range(bins.many[initial]):
        mask = bins.mask[initial, one]
        of = bins.partitions[mask, : bins.size[mask]]
        late, first[FREE, one] = serve(world.load, prices, of, 0, first_us, 0, first)
        if late < 0:
            return False
        now.late[initial, 0] += late
    now.value[initial, 0] = world.states.replicas[initial] * first_us + prices.late_us * now.late[initial, 0]
    return True


@compiled
def _take_over(
    world: _World, now: Labels, state: int, way: int, target: int, tick: int, served: _Served, heirs: Ints, made: Labels
) -> int:
    """Fill `made` with what the replicas do that inherit as `heirs` says; return what those that leave still cost."""
    bins, begin_us, claimed, rest_us = world.bins, world.edges[tick], 0, 0
    for one in range(bins.many[target]):
        mask, at = bins.mask[target, one], heirs[one] + 1
        claimed |= 1 << heirs[one] if at else 0
        made.at[0, 0, FREE, one] = served.at[mask, at, FREE, 0]
        for partition in bins.partitions[mask, : bins.size[mask]]:
            made.at[0, 0, :FREE, partition] = served.at[mask, at, :FREE, partition]
    for old in range(bins.many[state]):
        if not claimed >> old & 1:
            rest_us += max(0, min(now.at[state, way, FREE, old], world.prices.until_us) - begin_us)
    return rest_us


@compiled
def search(  # noqa: PLR0912, PLR0915  one loop over ticks, labels and states; parts that are not it are above
    load: Load, states: States, ticks: Ints, prices: Prices, initial: int, keep: int, optimistic: bool
) -> tuple[int, int, Ints, Ints]:
    """Return (value, late, path, kept) of the cheapest schedule; value -1: none keeps the promise.

    ticks: when placements may change, µs. initial: the state before the first one. keep: ways that a state may have.
    optimistic: where labels do not fit, or replicas might inherit in several ways, one as good as each of them stands
    for all; the value is then one that no schedule is below.
    value: replica-µs, late events at their price included. path: the state from each tick on. kept: shape
    (ticks, partitions), which bin of the state before the replica of each bin was; NOBODY: another one.
    """
    count, partitions = states.member.shape
    event_us = int(load.take.mean()) if len(load.take) else 0
    bins = _bins(states)
    world = _World(load, prices, states, bins, np.append(ticks, NEVER))
    now, then = labels_for(count, keep, partitions), labels_for(count, keep, partitions)
    made = labels_for(1, 1, partitions)
    wide = (1 << partitions, partitions + 1)
    served = _Served(np.full(wide, -1), np.zeros(wide, np.int64), np.zeros((*wide, 4, partitions), np.int64))
    before = np.zeros((len(ticks), count, keep), np.int32)
    inherited = np.full((len(ticks), count, keep, partitions), NONE, np.int8)
    tried, heirs = np.zeros(partitions, np.int64), np.zeros(partitions, np.int64)
    path = np.zeros(len(ticks), np.int64)
    kept = np.full((len(ticks), partitions), NONE, np.int64)
    if not _begin(world, initial, now):
        return -1, 0, path, kept

    label = 0
    for tick in range(len(ticks)):
        begin_us, end_us = world.edges[tick], world.edges[tick + 1]
        paid_us = min(prices.until_us, end_us) - begin_us
        then.ways[:] = 0
        for carried in range(count * keep):
            state, way = carried // keep, carried % keep
            if way >= now.ways[state]:
                continue
            label += 1
            for target in range(count):
                more = states.replicas[target] - states.replicas[state]
                value = now.value[state, way] + states.replicas[target] * paid_us + max(0, more) * prices.startup_us
                too_soon = more > 0 and prices.startup_us and begin_us - prices.startup_us < ticks[0]
                beaten = keep == 1 and then.ways[target] and then.value[target, 0] <= value
                if too_soon or (beaten and not optimistic):
                    continue
                _serve_all(world, now, state, way, target, tick, served, label)
                if optimistic:
                    late = _hope(bins, state, target, served, made, heirs)
                else:
                    late = _inherit(bins, state, target, end_us, served, tried, heirs)
                if late < 0:
                    continue
                if not optimistic:
                    rest_us = _take_over(world, now, state, way, target, tick, served, heirs, made)
                    value += rest_us if more < 0 else 0
                made.value[0, 0] = value + prices.late_us * late
                made.late[0, 0] = now.late[state, way] + late
                to = keep_label(then, target, made, end_us, event_us, optimistic)
                if to != DOMINATED:
                    before[tick, target, to] = carried
                    inherited[tick, target, to] = heirs
        now, then = then, now

    state, way = best_label(now)
    if state == NONE:
        return -1, 0, path, kept
    value, late = now.value[state, way], now.late[state, way]
    for tick in range(len(ticks) - 1, -1, -1):
        path[tick] = state
        kept[tick] = inherited[tick, state, way]
        state, way = before[tick, state, way] // keep, before[tick, state, way] % keep
    return value, late, path, kept
