"""Dynamic programming over the ticks of a run: which placements, one after another, cost least. Compiled.

A *state* is a placement and the replicas paid for. A *label* is one way to have come to a state, and where it leaves
the queues. From tick to tick each label is carried into each state. Replicas serve as the simulator's do: in the order
of numbers, what is in service is finished first, and a partition that changes its replica pauses. What a replica does
until the next tick follows from its partitions and from which replica it was, so that is computed once for a label.
"""
# ruff: noqa: PLR0917  # compiled functions take numbers and arrays one by one, by position

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from autoscaler.jit import compiled

Ints = NDArray[np.int64]
NEVER: Final = 1 << 60
NOBODY: Final = -1
DOMINATED: Final = -1


class Load(NamedTuple):
    """Events, sorted by partition, then by number."""

    number: Ints
    time: Ints
    """When intended, µs."""
    take: Ints
    """Service at speed 1, µs."""
    first: Ints
    """By partition: where its events begin; and where the last one's end."""


class States(NamedTuple):
    """Every placement that may be chosen. Bins of one are numbered from 0, in the order of their first partitions."""

    member: Ints
    """Shape (states, partitions): the bin of each partition."""
    replicas: Ints
    """Paid for; more than bins: the others are idle."""
    speed: NDArray[np.float64]
    """Of each replica."""


class Prices(NamedTuple):
    """What a schedule pays, and what it must keep."""

    until_us: int
    """Replicas are paid for until then."""
    pause_us: int
    """Of a partition that changes its replica."""
    startup_us: int
    """Each replica that is added was paid for so long before."""
    target_us: int
    """W."""
    late_us: int
    """Replica-µs for each late event; 0: none may be late."""
    drop: bool
    """Late events are not served: they cost what they cost and no time."""
    optimistic: bool
    """Where labels do not fit, or replicas might inherit in several ways, one as good as each of them stands for all:
    the value is then a lower bound."""


class _Labels(NamedTuple):
    """By state and way. What is of bins or partitions has one more axis."""

    ways: Ints
    """By state: how many there are."""
    value: Ints
    late: Ints
    following: Ints
    """By partition: its next event to be started."""
    busy: Ints
    """By partition: until when an event of it is in service."""
    eligible: Ints
    """By partition: from when on it may be served."""
    free: Ints
    """By bin: when its replica is free."""


class _Served(NamedTuple):
    """What replicas do until the next tick. By partitions (bit mask) and by the bin before + 1; 0: another replica."""

    label: Ints
    """For which it was computed."""
    late: Ints
    """-1: more than none, and none may be."""
    free: Ints
    following: Ints
    busy: Ints
    eligible: Ints


@compiled
def _next(load: Load, mask: int, free_us: int, end_us: int, following: Ints, eligible: Ints) -> tuple[int, int]:
    """Return the partition of `mask` whose event a replica starts next, and when; NOBODY: none before `end_us`."""
    chosen, start_us = NOBODY, end_us
    for partition in range(len(following)):
        event = following[partition]
        if mask >> partition & 1 and event < load.first[partition + 1]:
            could_us = max(load.time[event], eligible[partition], free_us)
            earlier = chosen != NOBODY and could_us == start_us and load.number[event] < load.number[following[chosen]]
            if could_us < start_us or earlier:
                chosen, start_us = partition, could_us
    return chosen, start_us


@compiled
def _late_by(load: Load, prices: Prices, event: int, at_us: int) -> bool:
    """Tell whether an event that is not started at `at_us` must be late."""
    return bool(load.time[event] + prices.target_us < at_us + load.take[event])


@compiled
def _serve(
    load: Load,
    prices: Prices,
    speed: float,
    mask: int,
    begin_us: int,
    end_us: int,
    free_us: int,
    following: Ints,
    busy: Ints,
    eligible: Ints,
) -> tuple[int, int]:
    """Let a replica serve the partitions of `mask` until `end_us`; return how many are late (-1: given up), and when
    it is free.

    An event that waits is late as soon as it cannot be in time. `following` and `busy` are brought up to date.
    """
    late = 0
    while True:
        chosen, start_us = _next(load, mask, free_us, end_us, following, eligible)
        if chosen == NOBODY:
            break
        event = following[chosen]
        following[chosen] += 1
        done_us = start_us + int(load.take[event] / speed + (0.0 if prices.drop else 0.5))
        if done_us > load.time[event] + prices.target_us:
            if prices.late_us == 0:
                return -1, 0
            late += prices.drop or not _late_by(load, prices, event, begin_us)
            if prices.drop:
                continue
        free_us = done_us
        busy[chosen] = free_us
    if prices.drop or end_us == NEVER:
        return late, free_us
    for partition in range(len(following)):
        event = following[partition] if mask >> partition & 1 else load.first[partition + 1]
        while event < load.first[partition + 1] and load.time[event] < end_us and _late_by(load, prices, event, end_us):
            late += not _late_by(load, prices, event, begin_us)
            event += 1
    return (-1, 0) if late and prices.late_us == 0 else (late, free_us)


@compiled
def _serve_all(
    load: Load,
    prices: Prices,
    states: States,
    masks: Ints,
    bins: Ints,
    labels: _Labels,
    state: int,
    way: int,
    target: int,
    begin_us: int,
    end_us: int,
    served: _Served,
    label: int,
) -> None:
    """Compute, where it is not yet known, what each bin of `target` would do after one label."""
    for one in range(bins[target]):
        mask = masks[target, one]
        for old in range(-1, bins[state]):
            at = old + 1
            if served.label[mask, at] == label or (old >= 0 and not mask & masks[state, old]):
                continue
            served.label[mask, at] = label
            for partition in range(states.member.shape[1]):
                busy_us = labels.busy[state, way, partition]
                served.following[mask, at, partition] = labels.following[state, way, partition]
                served.busy[mask, at, partition] = busy_us
                moves = mask >> partition & 1 and states.member[state, partition] != old
                served.eligible[mask, at, partition] = (
                    max(begin_us, busy_us) + prices.pause_us if moves else labels.eligible[state, way, partition]
                )
            served.late[mask, at], served.free[mask, at] = _serve(
                load,
                prices,
                states.speed[target],
                mask,
                begin_us,
                end_us,
                labels.free[state, way, old] if old >= 0 else begin_us,
                served.following[mask, at],
                served.busy[mask, at],
                served.eligible[mask, at],
            )


@compiled
def _inherit(masks: Ints, bins: Ints, state: int, target: int, served: _Served, tried: Ints, heirs: Ints) -> int:
    """Find which bin of `state` each bin of `target` had best be, so that fewest are late and most is served.

    heirs: takes it. Returns how many are late; -1: there is no way without.
    """
    fewest, most = -1, 0
    tried[:] = NOBODY
    place = 0
    while place < bins[target]:
        claimed, late, progress = 0, 0, 0
        for one in range(bins[target]):
            mask, old = masks[target, one], tried[one]
            if old >= 0 and (claimed >> old & 1 or not mask & masks[state, old]):
                late = -1
                break
            if served.late[mask, old + 1] < 0:
                late = -1
                break
            claimed |= 1 << old if old >= 0 else 0
            late += served.late[mask, old + 1]
            for partition in range(served.following.shape[2]):
                progress += served.following[mask, old + 1, partition] if mask >> partition & 1 else 0
        if late >= 0 and (fewest < 0 or late < fewest or (late == fewest and progress > most)):
            fewest, most = late, progress
            heirs[:] = tried
        place = 0
        while place < bins[target]:
            tried[place] += 1
            if tried[place] < bins[state]:
                break
            tried[place] = NOBODY
            place += 1
    return fewest


@compiled
def _hope(masks: Ints, bins: Ints, state: int, target: int, served: _Served, made: _Labels, heirs: Ints) -> int:
    """Fill `made` with what is as good for each bin of `target` as any way to inherit; return the least late, or -1."""
    late = 0
    heirs[:] = NOBODY
    for one in range(bins[target]):
        mask, fewest = masks[target, one], -1
        for old in range(-1, bins[state]):
            at = old + 1
            if (old >= 0 and not mask & masks[state, old]) or served.late[mask, at] < 0:
                continue
            new = fewest < 0
            fewest = served.late[mask, at] if new else min(fewest, served.late[mask, at])
            made.free[0, 0, one] = served.free[mask, at] if new else min(made.free[0, 0, one], served.free[mask, at])
            for partition in range(served.following.shape[2]):
                if mask >> partition & 1:
                    following, busy, eligible = made.following[0, 0], made.busy[0, 0], made.eligible[0, 0]
                    if new:
                        following[partition] = served.following[mask, at, partition]
                        busy[partition] = served.busy[mask, at, partition]
                        eligible[partition] = served.eligible[mask, at, partition]
                    following[partition] = max(following[partition], served.following[mask, at, partition])
                    busy[partition] = min(busy[partition], served.busy[mask, at, partition])
                    eligible[partition] = min(eligible[partition], served.eligible[mask, at, partition])
        if fewest < 0:
            return -1
        late += fewest
    return late


@compiled
def _worth(value: int, following: Ints, event_us: int) -> int:
    """Return the cost of a label less what its served events cost at a replica that is always busy."""
    return value - event_us * int(following.sum())


@compiled
def _place(
    labels: _Labels, state: int, made: _Labels, end_us: int, event_us: int, optimistic: bool
) -> tuple[int, bool]:
    """Return where a label goes among the ways of a state (DOMINATED: nowhere), and whether it replaces another there.

    What differs gives way only where no way is free: in value the nearest if they are merged, else the one worth least.
    """
    keep = labels.value.shape[1]
    for way in range(labels.ways[state]):
        no_worse = labels.value[state, way] <= made.value[0, 0]
        no_better = labels.value[state, way] >= made.value[0, 0]
        for partition in range(made.following.shape[2]):
            mine, its = made.following[0, 0, partition], labels.following[state, way, partition]
            my_us = max(made.eligible[0, 0, partition], end_us)
            its_us = max(labels.eligible[state, way, partition], end_us)
            no_worse = no_worse and its >= mine and its_us <= my_us
            no_better = no_better and its <= mine and its_us >= my_us
        if no_worse:
            return DOMINATED, False
        if no_better:
            return way, False
    if labels.ways[state] < keep:
        labels.ways[state] += 1
        return int(labels.ways[state]) - 1, False
    chosen, most = 0, -NEVER
    for way in range(keep):
        how = -abs(labels.value[state, way] - made.value[0, 0])
        if not optimistic:
            how = _worth(labels.value[state, way], labels.following[state, way], event_us)
        if how > most:
            chosen, most = way, how
    if not optimistic and most <= _worth(made.value[0, 0], made.following[0, 0], event_us):
        return DOMINATED, True
    return chosen, True


@compiled
def _merge(labels: _Labels, state: int, way: int, made: _Labels) -> None:
    """Make `made` as good as the way of `labels`, and as itself."""
    made.value[0, 0] = min(made.value[0, 0], labels.value[state, way])
    made.late[0, 0] = min(made.late[0, 0], labels.late[state, way])
    for partition in range(made.following.shape[2]):
        made.following[0, 0, partition] = max(made.following[0, 0, partition], labels.following[state, way, partition])
        made.busy[0, 0, partition] = min(made.busy[0, 0, partition], labels.busy[state, way, partition])
        made.eligible[0, 0, partition] = min(made.eligible[0, 0, partition], labels.eligible[state, way, partition])
        made.free[0, 0, partition] = min(made.free[0, 0, partition], labels.free[state, way, partition])


@compiled
def _labels(states: int, keep: int, partitions: int) -> _Labels:
    return _Labels(
        np.zeros(states, np.int64),
        np.zeros((states, keep), np.int64),
        np.zeros((states, keep), np.int64),
        np.zeros((states, keep, partitions), np.int64),
        np.zeros((states, keep, partitions), np.int64),
        np.zeros((states, keep, partitions), np.int64),
        np.zeros((states, keep, partitions), np.int64),
    )


@compiled
def _begin(
    load: Load, states: States, prices: Prices, masks: Ints, bins: Ints, initial: int, first_us: int, now: _Labels
) -> bool:
    """Set the one label of the first tick; return whether the promise can still be kept."""
    now.ways[initial] = 1
    now.following[initial, 0] = load.first[:-1]
    for one in range(bins[initial]):
        late, now.free[initial, 0, one] = _serve(
            load,
            prices,
            states.speed[initial],
            masks[initial, one],
            0,
            first_us,
            0,
            now.following[initial, 0],
            now.busy[initial, 0],
            now.eligible[initial, 0],
        )
        if late < 0:
            return False
        now.late[initial, 0] += late
    now.value[initial, 0] = states.replicas[initial] * first_us + prices.late_us * now.late[initial, 0]
    return True


@compiled
def _take_over(
    prices: Prices,
    masks: Ints,
    bins: Ints,
    now: _Labels,
    state: int,
    way: int,
    target: int,
    begin_us: int,
    served: _Served,
    heirs: Ints,
    made: _Labels,
) -> int:
    """Fill `made` with what the replicas do that inherit as `heirs` says; return what those that leave still cost."""
    claimed, rest_us = 0, 0
    for one in range(bins[target]):
        mask, at = masks[target, one], heirs[one] + 1
        claimed |= 1 << heirs[one] if at else 0
        made.free[0, 0, one] = served.free[mask, at]
        for partition in range(made.following.shape[2]):
            if mask >> partition & 1:
                made.following[0, 0, partition] = served.following[mask, at, partition]
                made.busy[0, 0, partition] = served.busy[mask, at, partition]
                made.eligible[0, 0, partition] = served.eligible[mask, at, partition]
    for old in range(bins[state]):
        if not claimed >> old & 1:
            rest_us += max(0, min(now.free[state, way, old], prices.until_us) - begin_us)
    return rest_us


@compiled
def _keep(then: _Labels, state: int, way: int, made: _Labels) -> None:
    then.value[state, way] = made.value[0, 0]
    then.late[state, way] = made.late[0, 0]
    then.following[state, way] = made.following[0, 0]
    then.busy[state, way] = made.busy[0, 0]
    then.eligible[state, way] = made.eligible[0, 0]
    then.free[state, way] = made.free[0, 0]


@compiled
def _best(now: _Labels) -> tuple[int, int]:
    """Return state and way of the label of least value; NOBODY where there is none."""
    best, best_way = NOBODY, 0
    for state in range(len(now.ways)):
        for way in range(now.ways[state]):
            if best == NOBODY or now.value[state, way] < now.value[best, best_way]:
                best, best_way = state, way
    return best, best_way


@compiled
def search(  # noqa: PLR0912, PLR0915  one loop over ticks, labels and states; parts that are not it are above
    load: Load, states: States, ticks: Ints, prices: Prices, initial: int, keep: int
) -> tuple[int, int, Ints, Ints]:
    """Return (value, late, path, kept) of the cheapest schedule; value -1: none keeps the promise.

    ticks: when placements may change, µs. initial: the state before the first one. keep: ways that a state may have.
    value: replica-µs, late events at their price included. path: the state from each tick on. kept: shape
    (ticks, partitions), which bin of the state before the replica of each bin was; NOBODY: another one.
    """
    count, partitions = states.member.shape
    event_us = int(load.take.mean()) if len(load.take) else 0
    bins = np.zeros(count, np.int64)
    masks = np.zeros((count, partitions), np.int64)
    for state in range(count):
        for partition in range(partitions):
            masks[state, states.member[state, partition]] |= 1 << partition
        bins[state] = states.member[state].max() + 1
    alike = states.speed.min() == states.speed.max()
    now, then, made = _labels(count, keep, partitions), _labels(count, keep, partitions), _labels(1, 1, partitions)
    wide = (1 << partitions, partitions + 1)
    served = _Served(
        np.full(wide, -1),
        np.zeros(wide, np.int64),
        np.zeros(wide, np.int64),
        np.zeros((1 << partitions, partitions + 1, partitions), np.int64),
        np.zeros((1 << partitions, partitions + 1, partitions), np.int64),
        np.zeros((1 << partitions, partitions + 1, partitions), np.int64),
    )
    before = np.zeros((len(ticks), count, keep), np.int32)
    inherited = np.full((len(ticks), count, keep, partitions), NOBODY, np.int8)
    tried, heirs = np.zeros(partitions, np.int64), np.zeros(partitions, np.int64)
    path = np.zeros(len(ticks), np.int64)
    kept = np.full((len(ticks), partitions), NOBODY, np.int64)
    if not _begin(load, states, prices, masks, bins, initial, ticks[0], now):
        return -1, 0, path, kept

    label = 0
    for tick in range(len(ticks)):
        begin_us = ticks[tick]
        end_us = NEVER if tick == len(ticks) - 1 else ticks[tick + 1]
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
                if too_soon or (beaten and not prices.optimistic):
                    continue
                label += 0 if alike else 1
                _serve_all(load, prices, states, masks, bins, now, state, way, target, begin_us, end_us, served, label)
                if prices.optimistic:
                    late = _hope(masks, bins, state, target, served, made, heirs)
                else:
                    late = _inherit(masks, bins, state, target, served, tried, heirs)
                if late < 0:
                    continue
                if not prices.optimistic:
                    rest_us = _take_over(prices, masks, bins, now, state, way, target, begin_us, served, heirs, made)
                    value += rest_us if more < 0 else 0
                made.value[0, 0] = value + prices.late_us * late
                made.late[0, 0] = now.late[state, way] + late
                to, replaces = _place(then, target, made, end_us, event_us, prices.optimistic)
                if to == DOMINATED:
                    continue
                if replaces and prices.optimistic:
                    _merge(then, target, to, made)
                before[tick, target, to] = carried
                inherited[tick, target, to] = heirs
                _keep(then, target, to, made)
        now, then = then, now

    state, way = _best(now)
    if state == NOBODY:
        return -1, 0, path, kept
    value, late = now.value[state, way], now.late[state, way]
    for tick in range(len(ticks) - 1, -1, -1):
        path[tick] = state
        kept[tick] = inherited[tick, state, way]
        state, way = before[tick, state, way] // keep, before[tick, state, way] % keep
    return value, late, path, kept
