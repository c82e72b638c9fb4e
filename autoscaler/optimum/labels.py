"""Ways to have come to a state of the dynamic program, and which of them are kept. Compiled."""
# ruff: noqa: PLR0917  # compiled functions take numbers and arrays one by one, by position

from typing import Final, NamedTuple

import numpy as np

from autoscaler.jit import compiled
from autoscaler.optimum.serving import NEVER, NOBODY, Ints

DOMINATED: Final = -1


class Labels(NamedTuple):
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
    for way in range(labels.ways[state]):
        no_worse = labels.value[state, way] <= made.value[0, 0]
        no_better = labels.value[state, way] >= made.value[0, 0]
        for partition in range(made.following.shape[2]):
            mine, its = made.following[0, 0, partition], labels.following[state, way, partition]
            my_us = max(made.eligible[0, 0, partition], end_us)
            its_us = max(labels.eligible[state, way, partition], end_us)
            no_worse = no_worse and its >= mine and its_us <= my_us
            no_better = no_better and its <= mine and its_us >= my_us
            if optimistic:  # to the µs: what is dropped must not have been better in anything
                mine, its = made.free[0, 0, partition], labels.free[state, way, partition]
                my_us, its_us = made.busy[0, 0, partition], labels.busy[state, way, partition]
                no_worse = no_worse and its <= mine and its_us <= my_us
                no_better = no_better and its >= mine and its_us >= my_us
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
def merge(labels: Labels, state: int, way: int, made: Labels) -> None:
    """Make `made` as good as the way of `labels`, and as itself."""
    made.value[0, 0] = min(made.value[0, 0], labels.value[state, way])
    made.late[0, 0] = min(made.late[0, 0], labels.late[state, way])
    for partition in range(made.following.shape[2]):
        made.following[0, 0, partition] = max(made.following[0, 0, partition], labels.following[state, way, partition])
        made.busy[0, 0, partition] = min(made.busy[0, 0, partition], labels.busy[state, way, partition])
        made.eligible[0, 0, partition] = min(made.eligible[0, 0, partition], labels.eligible[state, way, partition])
        made.free[0, 0, partition] = min(made.free[0, 0, partition], labels.free[state, way, partition])


@compiled
def labels_for(states: int, keep: int, partitions: int) -> Labels:
    """Return room for `keep` ways to each state."""
    return Labels(
        np.zeros(states, np.int64),
        np.zeros((states, keep), np.int64),
        np.zeros((states, keep), np.int64),
        np.zeros((states, keep, partitions), np.int64),
        np.zeros((states, keep, partitions), np.int64),
        np.zeros((states, keep, partitions), np.int64),
        np.zeros((states, keep, partitions), np.int64),
    )


@compiled
def keep_label(then: Labels, state: int, way: int, made: Labels) -> None:
    """Put `made` there."""
    then.value[state, way] = made.value[0, 0]
    then.late[state, way] = made.late[0, 0]
    then.following[state, way] = made.following[0, 0]
    then.busy[state, way] = made.busy[0, 0]
    then.eligible[state, way] = made.eligible[0, 0]
    then.free[state, way] = made.free[0, 0]


@compiled
def best_label(now: Labels) -> tuple[int, int]:
    """Return state and way of the label of least value; NOBODY where there is none."""
    best, best_way = NOBODY, 0
    for state in range(len(now.ways)):
        for way in range(now.ways[state]):
            if best == NOBODY or now.value[state, way] < now.value[best, best_way]:
                best, best_way = state, way
    return best, best_way
