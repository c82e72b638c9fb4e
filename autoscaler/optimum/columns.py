"""Dynamic programming over ticks of which each has a few placements to choose from (columns). Compiled.

For more partitions than have all their placements tried. Which placements are worth trying is another module's part.
"""
# ruff: noqa: PLR0917  # compiled functions take numbers and arrays one by one, by position

from typing import Final, NamedTuple

import numpy as np

from autoscaler.jit import compiled
from autoscaler.optimum.serving import NEVER, NOBODY, Ints, Load, Prices, serve

WAYS: Final = 2
"""To have come to a placement."""


class Columns(NamedTuple):
    """Placements to choose from. Bins of one are numbered from 0, without gaps."""

    first: Ints
    """By tick: its first column; and where the last one's end."""
    bin: Ints
    """Shape (columns, partitions)."""
    bins: Ints
    """By column: how many."""


class _Labels(NamedTuple):
    """One for each column of a tick and way to it. What is of partitions or bins has one more axis."""

    column: Ints
    """-1: there is none."""
    value: Ints
    late: Ints
    served: Ints
    following: Ints
    busy: Ints
    eligible: Ints
    free: Ints
    """By bin: when its replica is free."""


class _Members(NamedTuple):
    """The partitions of each bin of a column."""

    order: Ints
    """Partitions, sorted by their bins."""
    first: Ints
    """By bin: where its own begin; and where the last one's end."""


@compiled
def _members(bin_of: Ints, bins: int, members: _Members) -> None:
    members.first[: bins + 1] = 0
    for partition in range(len(bin_of)):
        members.first[bin_of[partition] + 1] += 1
    for one in range(bins):
        members.first[one + 1] += members.first[one]
    at = members.first.copy()
    for partition in range(len(bin_of)):
        members.order[at[bin_of[partition]]] = partition
        at[bin_of[partition]] += 1


@compiled
def _inherit(old_bin: Ints, olds: int, new_bin: Ints, news: int, weight: Ints, shared: Ints, heirs: Ints) -> None:
    """Let each new bin be the old one that it has most in common with, by weight; NOBODY where that is taken."""
    shared[:news, :olds] = 0
    for partition in range(len(old_bin)):
        shared[new_bin[partition], old_bin[partition]] += weight[partition]
    heirs[:] = NOBODY
    claimed = np.zeros(olds, np.bool_)
    for mutual in (True, False):
        for new in range(news):
            if heirs[new] != NOBODY:
                continue
            best = NOBODY
            for old in range(olds):
                if not claimed[old] and shared[new, old] and (best == NOBODY or shared[new, old] > shared[new, best]):
                    best = old
            if best != NOBODY and (not mutual or shared[new, best] == shared[:news, best].max()):
                heirs[new] = best
                claimed[best] = True


@compiled
def _carry(
    load: Load,
    prices: Prices,
    now: _Labels,
    of: int,
    old_bin: Ints,
    olds: int,
    new_bin: Ints,
    news: int,
    begin_us: int,
    end_us: int,
    members: _Members,
    heirs: Ints,
    made: _Labels,
) -> int:
    """Fill `made` with where one label leaves a placement at the next tick; return what those that leave still cost."""
    made.following[0], made.busy[0], made.eligible[0] = now.following[of], now.busy[of], now.eligible[of]
    for partition in range(len(new_bin)):
        if heirs[new_bin[partition]] != old_bin[partition]:
            made.eligible[0, partition] = max(begin_us, now.busy[of, partition]) + prices.pause_us
    made.late[0] = now.late[of]
    left = np.ones(olds, np.bool_)
    for one in range(news):
        free_us = begin_us
        if heirs[one] != NOBODY:
            free_us = now.free[of, heirs[one]]
            left[heirs[one]] = False
        own = members.order[members.first[one] : members.first[one + 1]]
        late, made.free[0, one] = serve(
            load, prices, own, begin_us, end_us, free_us, made.following[0], made.busy[0], made.eligible[0]
        )
        made.late[0] += late
    made.served[0] = made.following[0].sum()
    rest_us = 0
    for old in range(olds):
        rest_us += max(0, min(now.free[of, old], prices.until_us) - begin_us) if left[old] else 0
    return rest_us if olds > news else 0


@compiled
def _keep(then: _Labels, place: int, made: _Labels, event_us: int) -> int:
    """Put `made` among the ways that begin at `place`, unless they are better; return where, or -1."""
    worst = -1
    for at in range(place, place + WAYS):
        if then.column[at] < 0:
            worst = at
            break
        if then.value[at] <= made.value[0] and then.served[at] >= made.served[0]:
            return -1
        if then.value[at] >= made.value[0] and then.served[at] <= made.served[0]:
            worst = at
            break
    if worst < 0:
        worth = np.array([then.value[at] - event_us * then.served[at] for at in range(place, place + WAYS)])
        worst = place + int(worth.argmax())
        if worth.max() <= made.value[0] - event_us * made.served[0]:
            return -1
    then.column[worst], then.value[worst], then.late[worst] = made.column[0], made.value[0], made.late[0]
    then.served[worst], then.following[worst], then.busy[worst] = made.served[0], made.following[0], made.busy[0]
    then.eligible[worst], then.free[worst] = made.eligible[0], made.free[0]
    return worst


@compiled
def _labels(many: int, partitions: int, bins: int) -> _Labels:
    return _Labels(
        np.full(many, -1),
        np.zeros(many, np.int64),
        np.zeros(many, np.int64),
        np.zeros(many, np.int64),
        np.zeros((many, partitions), np.int64),
        np.zeros((many, partitions), np.int64),
        np.zeros((many, partitions), np.int64),
        np.zeros((many, bins), np.int64),
    )


@compiled
def choose(  # one loop over ticks, labels and columns; parts that are not it are above
    load: Load, columns: Columns, ticks: Ints, reached: Ints, prices: Prices, least: int, owner: Ints, replicas: int
) -> tuple[int, int, Ints, Ints]:
    """Return (value, late events, the column of each tick, heirs) of the cheapest way through the columns.

    ticks: µs. reached: shape (ticks, partitions), the first event of each partition that comes after the tick's
    interval. least: replicas at any tick. owner: of each partition before the first tick, a bin as those of columns;
    replicas: how many there are then, with those that have none. value: replica-µs, late events at their price
    included. heirs: shape (ticks, bins), which bin of the column before each one was; NOBODY: another replica.
    """
    partitions = len(owner)
    width = (columns.first[1:] - columns.first[:-1]).max()
    owners = owner.max() + 1
    most = max(columns.bins.max(), owners)
    event_us = int(load.take.mean())
    now, then, made = (
        _labels(width * WAYS, partitions, most),
        _labels(width * WAYS, partitions, most),
        _labels(1, partitions, most),
    )
    members = _Members(np.zeros(partitions, np.int64), np.zeros(most + 2, np.int64))
    shared, heirs = np.zeros((most, most), np.int64), np.zeros(most, np.int64)
    before = np.zeros((len(ticks), width * WAYS), np.int32)
    chosen = np.zeros((len(ticks), width * WAYS), np.int32)
    inherited = np.full((len(ticks), width * WAYS, most), NOBODY, np.int16)
    now.column[0], now.following[0] = 0, load.first[:-1]
    _members(owner, owners, members)
    for one in range(owners):
        own = members.order[members.first[one] : members.first[one + 1]]
        late, now.free[0, one] = serve(
            load, prices, own, 0, ticks[0], 0, now.following[0], now.busy[0], now.eligible[0]
        )
        now.late[0] += late
    now.value[0] = replicas * ticks[0] + prices.late_us * now.late[0]

    for tick in range(len(ticks)):
        begin_us = ticks[tick]
        end_us = NEVER if tick == len(ticks) - 1 else ticks[tick + 1]
        paid_us = min(prices.until_us, end_us) - begin_us
        then.column[:] = -1
        for column in range(columns.first[tick], columns.first[tick + 1]):
            new_bin, news = columns.bin[column], columns.bins[column]
            _members(new_bin, news, members)
            for of in range(len(now.column)):
                if now.column[of] < 0:
                    continue
                old_bin, olds = (columns.bin[now.column[of]], columns.bins[now.column[of]]) if tick else (owner, owners)
                more = max(news, least) - (max(olds, least) if tick else replicas)
                if more > 0 and prices.startup_us and begin_us - prices.startup_us < ticks[0]:
                    continue
                weight = reached[tick] - now.following[of] + 1
                _inherit(old_bin, olds, new_bin, news, weight, shared, heirs)
                rest_us = _carry(
                    load, prices, now, of, old_bin, olds, new_bin, news, begin_us, end_us, members, heirs, made
                )
                made.column[0] = column
                made.value[0] = now.value[of] + max(news, least) * paid_us + max(0, more) * prices.startup_us + rest_us
                made.value[0] += prices.late_us * (made.late[0] - now.late[of])
                to = _keep(then, (column - columns.first[tick]) * WAYS, made, event_us)
                if to >= 0:
                    before[tick, to], chosen[tick, to] = of, column
                    inherited[tick, to] = heirs
        now, then = then, now

    at = -1
    for of in range(len(now.column)):
        if now.column[of] >= 0 and (at < 0 or now.value[of] < now.value[at]):
            at = of
    value, late = now.value[at], now.late[at]
    path, heirs_of = np.zeros(len(ticks), np.int64), np.zeros((len(ticks), most), np.int64)
    for tick in range(len(ticks) - 1, -1, -1):
        path[tick], heirs_of[tick] = chosen[tick, at], inherited[tick, at]
        at = before[tick, at]
    return value, late, path, heirs_of
