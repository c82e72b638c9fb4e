"""What a replica does with known events until the next decision, as in the simulator; ways to have come to a state, and
which of them are kept. Compiled.
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
FOLLOWING, BUSY, ELIGIBLE, FREE = 0, 1, 2, 3
"""Rows of what a label says: see Labels."""


class Load(NamedTuple):
    """Events, sorted by partition, then by number."""

    number: Ints
    time: Ints
    """When intended, µs."""
    take: Ints
    first: Ints
    """By partition: where its events begin; and where the last one's end."""


class Prices(NamedTuple):
    """What a schedule pays, and what it must keep."""

    until_us: int
    """Replicas are paid for until then."""
    pause_us: int
    """Of a partition that changes its replica."""
    startup_us: int
    """Each replica that is added was paid for so long before."""
    target_us: int
    late_us: int
    """Replica-µs for each late event; 0: none may be late."""
    longest_us: int
    """No event takes longer."""


@compiled
def next_event(load: Load, of: Ints, free_us: int, end_us: int, following: Ints, eligible: Ints) -> tuple[int, int]:
    """Return the partition among `of` whose event a replica starts next, and when; NOBODY: none before `end_us`."""
    chosen, start_us = NOBODY, end_us
    for partition in of:
        event = following[partition]
        if event < load.first[partition + 1]:
            could_us = max(load.time[event], eligible[partition], free_us)
            earlier = chosen != NOBODY and could_us == start_us and load.number[event] < load.number[following[chosen]]
            if could_us < start_us or earlier:
                chosen, start_us = partition, could_us
    return chosen, start_us


@compiled
def late_by(load: Load, prices: Prices, event: int, at_us: int) -> bool:
    """Tell whether an event that came before `at_us` and is not started then must be late."""
    return bool(load.time[event] < at_us and load.time[event] + prices.target_us < at_us + load.take[event])


@compiled
def serve(load: Load, prices: Prices, of: Ints, begin_us: int, end_us: int, free_us: int, at: Ints) -> tuple[int, int]:
    """Let a replica serve the partitions `of` until `end_us`; return how many are late (-1: given up), and when it is
    free.

    An event that waits is late as soon as it cannot be in time. at: as in Labels; FOLLOWING and BUSY are brought up to
    date.
    """
    late, following = 0, at[FOLLOWING]
    while True:
        chosen, start_us = next_event(load, of, free_us, end_us, following, at[ELIGIBLE])
        if chosen == NOBODY:
            break
        event = following[chosen]
        following[chosen] += 1
        free_us = start_us + load.take[event]
        at[BUSY, chosen] = free_us
        if free_us > load.time[event] + prices.target_us:
            if prices.late_us == 0:
                return -1, 0
            late += not late_by(load, prices, event, begin_us)
    if end_us == NEVER:
        return late, free_us
    for partition in of:
        for event in range(following[partition], load.first[partition + 1]):
            if load.time[event] >= min(end_us, end_us + prices.longest_us - prices.target_us):
                break
            late += late_by(load, prices, event, end_us) and not late_by(load, prices, event, begin_us)
    return (-1, 0) if late and prices.late_us == 0 else (late, free_us)


class Labels(NamedTuple):
    """By state and way."""

    ways: Ints
    """By state: how many there are."""
    value: Ints
    late: Ints
    at: Ints
    """Two more axes. FOLLOWING: by partition, its next event to be started. BUSY: until when an event of it is in
    service. ELIGIBLE: from when on it may be served. FREE: by bin, when its replica is free."""


@compiled
def _worth(value: int, following: Ints, event_us: int) -> int:
    """Return the cost of a label less what its served events cost at a replica that is always busy."""
    return value - event_us * int(following.sum())


@compiled
def place_label(
    labels: Labels, state: int, made: Labels, end_us: int, event_us: int, optimistic: bool
) -> tuple[int, bool]:
    """Return where a label goes among the ways of a state (DOMINATED: nowhere), and whether it replaces another there.

    What differs gives way only where no way is free: in value the nearest if they are merged, else the one worth least.
    """
    keep = labels.value.shape[1]
    mine = made.at[0, 0]
    for way in range(labels.ways[state]):
        its = labels.at[state, way]
        no_worse = labels.value[state, way] <= made.value[0, 0]
        no_better = labels.value[state, way] >= made.value[0, 0]
        for one in range(mine.shape[1]):
            my_us, its_us = max(mine[ELIGIBLE, one], end_us), max(its[ELIGIBLE, one], end_us)
            no_worse = no_worse and its[FOLLOWING, one] >= mine[FOLLOWING, one] and its_us <= my_us
            no_better = no_better and its[FOLLOWING, one] <= mine[FOLLOWING, one] and its_us >= my_us
            if optimistic:  # to the µs: what is dropped must not have been better in anything
                no_worse = no_worse and its[FREE, one] <= mine[FREE, one] and its[BUSY, one] <= mine[BUSY, one]
                no_better = no_better and its[FREE, one] >= mine[FREE, one] and its[BUSY, one] >= mine[BUSY, one]
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
            how = _worth(labels.value[state, way], labels.at[state, way, FOLLOWING], event_us)
        if how > most:
            chosen, most = way, how
    if not optimistic and most <= _worth(made.value[0, 0], mine[FOLLOWING], event_us):
        return DOMINATED, True
    return chosen, True


@compiled
def merge(labels: Labels, state: int, way: int, made: Labels) -> None:
    """Make `made` as good as the way of `labels`, and as itself."""
    made.value[0, 0] = min(made.value[0, 0], labels.value[state, way])
    made.late[0, 0] = min(made.late[0, 0], labels.late[state, way])
    mine, its = made.at[0, 0], labels.at[state, way]
    mine[FOLLOWING] = np.maximum(mine[FOLLOWING], its[FOLLOWING])
    mine[BUSY:] = np.minimum(mine[BUSY:], its[BUSY:])


@compiled
def labels_for(states: int, keep: int, partitions: int) -> Labels:
    """Return room for `keep` ways to each state."""
    numbers = np.zeros((2, states, keep), np.int64)
    return Labels(np.zeros(states, np.int64), numbers[0], numbers[1], np.zeros((states, keep, 4, partitions), np.int64))


@compiled
def keep_label(then: Labels, state: int, way: int, made: Labels) -> None:
    """Put `made` there."""
    then.value[state, way] = made.value[0, 0]
    then.late[state, way] = made.late[0, 0]
    then.at[state, way] = made.at[0, 0]


@compiled
def best_label(now: Labels) -> tuple[int, int]:
    """Return state and way of the label of least value; NOBODY where there is none."""
    best, best_way = NOBODY, 0
    for state in range(len(now.ways)):
        for way in range(now.ways[state]):
            if best == NOBODY or now.value[state, way] < now.value[best, best_way]:
                best, best_way = state, way
    return best, best_way
