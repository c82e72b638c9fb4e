"""Service of known events by one replica until the next decision, in the simulator's order. The loops are compiled."""
# ruff: noqa: PLR0917  # compiled functions take numbers and arrays one by one, by position

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from autoscaler.jit import compiled

Ints = NDArray[np.int64]
NEVER: Final = 1 << 60
NONE: Final = -1
FOLLOWING, BUSY, ELIGIBLE, FREE = 0, 1, 2, 3
"""Rows of `Labels.at`."""


class Load(NamedTuple):
    """Events, sorted by partition, then by number."""

    number: Ints
    time: Ints
    """Intended time, µs."""
    take: Ints
    """Service time, µs."""
    first: Ints
    """Index of the first event of each partition, and the end of the last one."""


class Prices(NamedTuple):
    """Costs and limits of a schedule."""

    until_us: int
    """Replicas are paid for until this time."""
    pause_us: int
    """Pause of a partition that changes its replica."""
    startup_us: int
    """Time for which an added replica is paid before it serves."""
    target_us: int
    late_us: int
    """Price of a late event, replica-µs; 0: no event may be late."""
    longest_us: int
    """Longest service time."""


@compiled
def next_event(load: Load, of: Ints, free_us: int, end_us: int, following: Ints, eligible: Ints) -> tuple[int, int]:
    """Return the partition among `of` whose event starts next, and its start, µs; NONE: none before `end_us`."""
    chosen, start_us = NONE, end_us
    for partition in of:
        event = following[partition]
        if event < load.first[partition + 1]:
            could_us = max(load.time[event], eligible[partition], free_us)
            earlier = chosen != NONE and could_us == start_us and load.number[event] < load.number[following[chosen]]
            if could_us < start_us or earlier:
                chosen, start_us = partition, could_us
    return chosen, start_us


@compiled
def is_late(load: Load, prices: Prices, event: int, at_us: int) -> bool:
    """Return whether an event that arrived before `at_us` and has not started by then can only finish late."""
    return bool(load.time[event] < at_us and load.time[event] + prices.target_us < at_us + load.take[event])


@compiled
def serve(load: Load, prices: Prices, of: Ints, begin_us: int, end_us: int, free_us: int, at: Ints) -> tuple[int, int]:
    """Let a replica serve the partitions `of` until `end_us`. Return the late events and the time at which it is free.

    A waiting event counts as late as soon as it cannot be in time. Return -1 if one is late and `late_us` is 0.
    at: `Labels.at` of one path. Its rows FOLLOWING and BUSY are updated.
    """
    late, following = 0, at[FOLLOWING]
    while True:
        chosen, start_us = next_event(load, of, free_us, end_us, following, at[ELIGIBLE])
        if chosen == NONE:
            break
        event = following[chosen]
        following[chosen] += 1
        free_us = start_us + load.take[event]
        at[BUSY, chosen] = free_us
        if free_us > load.time[event] + prices.target_us:
            if prices.late_us == 0:
                return -1, 0
            late += not is_late(load, prices, event, begin_us)
    if end_us == NEVER:
        return late, free_us
    for partition in of:
        for event in range(following[partition], load.first[partition + 1]):
            if load.time[event] >= min(end_us, end_us + prices.longest_us - prices.target_us):
                break
            late += is_late(load, prices, event, end_us) and not is_late(load, prices, event, begin_us)
    return (-1, 0) if late and prices.late_us == 0 else (late, free_us)
