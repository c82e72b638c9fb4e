"""Ways to have come to a state of the dynamic program, and which of them are kept. Compiled."""
# ruff: noqa: PLR0917  # compiled functions take numbers and arrays one by one, by position

from typing import Final, NamedTuple

import numpy as np

from autoscaler.jit import compiled
from autoscaler.optimum.serving import BUSY, ELIGIBLE, FOLLOWING, FREE, NEVER, NONE, Ints

DOMINATED: Final = -1


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
def _place(labels: Labels, state: int, made: Labels, end_us: int, event_us: int, optimistic: bool) -> tuple[int, bool]:
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
def labels_for(states: int, keep: int, partitions: int) -> Labels:
    """Return room for `keep` ways to each state."""
    numbers = np.zeros((2, states, keep), np.int64)
    return Labels(np.zeros(states, np.int64), numbers[0], numbers[1], np.zeros((states, keep, 4, partitions), np.int64))


@compiled
def keep_label(then: Labels, state: int, made: Labels, end_us: int, event_us: int, optimistic: bool) -> int:
    """Put `made` among the ways of a state; return where, or DOMINATED.

    optimistic: where it replaces one that differs, it is made as good as both.
    """
    way, replaces = _place(then, state, made, end_us, event_us, optimistic)
    if way == DOMINATED:
        return way
    mine, its = made.at[0, 0], then.at[state, way]
    if replaces and optimistic:
        made.value[0, 0] = min(made.value[0, 0], then.value[state, way])
        made.late[0, 0] = min(made.late[0, 0], then.late[state, way])
        mine[FOLLOWING] = np.maximum(mine[FOLLOWING], its[FOLLOWING])
        mine[BUSY:] = np.minimum(mine[BUSY:], its[BUSY:])
    then.value[state, way] = made.value[0, 0]
    then.late[state, way] = made.late[0, 0]
    its[:] = mine
    return way


@compiled
def best_label(now: Labels) -> tuple[int, int]:
    """Return state and way of the label of least value; NOBODY where there is none."""
    best, best_way = NONE, 0
    for state in range(len(now.ways)):
        for way in range(now.ways[state]):
            if best == NONE or now.value[state, way] < now.value[best, best_way]:
                best, best_way = state, way
    return best, best_way
