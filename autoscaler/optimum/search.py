"""Finds the cheapest sequence of placements by dynamic programming over the ticks of a run. The loops are compiled.

A *state* is a placement and the number of paid replicas. A *label* is a path to a state, with the queues at its end. At
each tick each label is extended to each state. Replicas serve as in the simulator: in the order of event numbers, after
the event in service. A partition that changes its replica pauses.
"""
# ruff: noqa: PLR0917  # compiled functions take numbers and arrays one by one, by position

import numpy as np

from autoscaler.jit import compiled
from autoscaler.optimum.labels import DOMINATED, Labels, best_label, keep_label, labels_for
from autoscaler.optimum.serving import FOLLOWING, FREE, NEVER, NONE, Ints, Load, Prices, serve
from autoscaler.optimum.transitions import (
    Constants,
    Served,
    States,
    best_of_all,
    bins_of,
    extend,
    match_bins,
    serve_all,
)


@compiled
def _begin(const: Constants, initial: int, now: Labels) -> bool:
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
    bins = bins_of(states)
    const = Constants(load, prices, states, bins, np.append(ticks, NEVER))
    now, then = labels_for(count, keep, partitions), labels_for(count, keep, partitions)
    made = labels_for(1, 1, partitions)
    wide = (1 << partitions, partitions + 1)
    served = Served(np.full(wide, -1), np.zeros(wide, np.int64), np.zeros((*wide, 4, partitions), np.int64))
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
                serve_all(const, now, state, path_, target, tick, served, label)
                if optimistic:
                    late = best_of_all(bins, state, target, served, made, previous)
                else:
                    late = match_bins(bins, state, target, end_us, served, tried, previous)
                if late < 0:
                    continue
                if not optimistic:
                    rest_us = extend(const, now, state, path_, target, tick, served, previous, made)
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
