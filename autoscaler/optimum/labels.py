"""Labels of the dynamic program are paths to a state. This module chooses those that are kept. Compiled loops."""
# ruff: noqa: PLR0917  # compiled functions take numbers and arrays one by one, by position

from typing import Final, NamedTuple

import numpy as np

from autoscaler.jit import compiled
from autoscaler.optimum.serving import BUSY, ELIGIBLE, FOLLOWING, FREE, NEVER, NONE, Ints

DOMINATED: Final = -1


class Labels(NamedTuple):
    """Paths to each state, shape (states, paths), with the queues at their end."""

    paths: Ints
    """Number of paths to each state."""
    value: Ints
    late: Ints
    at: Ints
    """Two more axes: row and place. Rows by partition: FOLLOWING, its next event to start; BUSY, end of its event in
    service, µs; ELIGIBLE, earliest time of service, µs. Row by bin: FREE, time at which its replica is free, µs."""


@compiled
def _worth(value: int, following: Ints, event_us: int) -> int:
    return value - event_us * int(following.sum())  # served events count as at a replica that is always busy


@compiled
def _place(labels: Labels, state: int, made: Labels, end_us: int, event_us: int, optimistic: bool) -> tuple[int, bool]:
    """Return the place of a label among those of a state (DOMINATED: none), and whether it replaces a different one.

    It replaces a different label only if no place is free: the one with the nearest value if they are merged, else the
    one worth least.
    """
    keep = labels.value.shape[1]
    mine = made.at[0, 0]
    for path in range(labels.paths[state]):
        its = labels.at[state, path]
        no_worse = labels.value[state, path] <= made.value[0, 0]
        no_better = labels.value[state, path] >= made.value[0, 0]
        for i in range(mine.shape[1]):
            my_us, its_us = max(mine[ELIGIBLE, i], end_us), max(its[ELIGIBLE, i], end_us)
            no_worse = no_worse and its[FOLLOWING, i] >= mine[FOLLOWING, i] and its_us <= my_us
            no_better = no_better and its[FOLLOWING, i] <= mine[FOLLOWING, i] and its_us >= my_us
            if optimistic:  # compare everything exactly: a dropped label must not be better in any respect
                no_worse = no_worse and its[FREE, i] <= mine[FREE, i] and its[BUSY, i] <= mine[BUSY, i]
                no_better = no_better and its[FREE, i] >= mine[FREE, i] and its[BUSY, i] >= mine[BUSY, i]
        if no_worse:
            return DOMINATED, False
        if no_better:
            return path, False
    if labels.paths[state] < keep:
        labels.paths[state] += 1
        return int(labels.paths[state]) - 1, False
    chosen, most = 0, -NEVER
    for path in range(keep):
        score = -abs(labels.value[state, path] - made.value[0, 0])
        if not optimistic:
            score = _worth(labels.value[state, path], labels.at[state, path, FOLLOWING], event_us)
        if score > most:
            chosen, most = path, score
    if not optimistic and most <= _worth(made.value[0, 0], mine[FOLLOWING], event_us):
        return DOMINATED, True
    return chosen, True


@compiled
def labels_for(states: int, keep: int, partitions: int) -> Labels:
    """Return empty labels with room for `keep` paths to each state."""
    numbers = np.zeros((2, states, keep), np.int64)
    return Labels(np.zeros(states, np.int64), numbers[0], numbers[1], np.zeros((states, keep, 4, partitions), np.int64))


@compiled
def keep_label(then: Labels, state: int, made: Labels, end_us: int, event_us: int, optimistic: bool) -> int:
    """Add label `made` to a state. Return its place, or DOMINATED.

    optimistic: if `made` replaces a different label, each of its values first becomes the better of both values.
    """
    path, replaces = _place(then, state, made, end_us, event_us, optimistic)
    if path == DOMINATED:
        return path
    mine, its = made.at[0, 0], then.at[state, path]
    if replaces and optimistic:
        made.value[0, 0] = min(made.value[0, 0], then.value[state, path])
        made.late[0, 0] = min(made.late[0, 0], then.late[state, path])
        mine[FOLLOWING] = np.maximum(mine[FOLLOWING], its[FOLLOWING])
        mine[BUSY:] = np.minimum(mine[BUSY:], its[BUSY:])
    then.value[state, path] = made.value[0, 0]
    then.late[state, path] = made.late[0, 0]
    its[:] = mine
    return path


@compiled
def best_label(now: Labels) -> tuple[int, int]:
    """Return state and path of the label with the least value; NONE if there is no label."""
    best, best_path = NONE, 0
    for state in range(len(now.paths)):
        for path in range(now.paths[state]):
            if best == NONE or now.value[state, path] < now.value[best, best_path]:
                best, best_path = state, path
    return best, best_path
