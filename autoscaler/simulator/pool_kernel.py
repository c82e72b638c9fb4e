"""The loops of `pool.Pool`, compiled.

All members take from one queue, so an event's outcome is known when its unit is acquired: by the first of a heap of
members, in the order in which they become free. Events of a unit are a chain; each member keeps that of what it has
acquired and not acknowledged. Chains link event numbers; event e lies in row e − base.
"""
# ruff: noqa: PLR0917  # compiled functions take numbers and arrays one by one, by position

import numpy as np
from numpy.typing import NDArray

from autoscaler.jit import compiled
from autoscaler.simulator.kernel import service_us
from autoscaler.simulator.rows import NEVER, NONE, Rows

Heap = NDArray[np.int64]
"""Numbers of the members, by when they are free, then by number."""


@compiled
def form_units(events: Rows, base: int, partitions: Rows, first: int, end: int, fed: int, whole: bool) -> None:
    """Link the events first … end − 1 to units. fed: the first event that was fed with them."""
    for event in range(first, end):
        partition = events[event - base].partition
        last = partitions[partition].last
        joins = whole and last >= fed and events[last - base].intended_us == events[event - base].intended_us
        if joins:
            events[last - base].next = event
        events[event - base].polls = not joins
        events[event - base].next = NONE
        partitions[partition].last = event


@compiled
def arrive(events: Rows, base: int, partitions: Rows, event: int, end: int, until_us: int) -> int:
    """Count the events from `event` on that arrive before `until_us`; return the first one left, at most `end`."""
    while event < end and events[event - base].intended_us < until_us:
        partitions[events[event - base].partition].produced += 1
        event += 1
    return event


@compiled
def commit(events: Rows, base: int, members: Rows, partitions: Rows, member: int, now_us: int) -> None:
    """Commit what a member has finished now."""
    event = members[member].first
    while event != NONE and events[event - base].done_us <= now_us:
        partitions[events[event - base].partition].committed += 1
        members[member].done_us = events[event - base].done_us
        event = events[event - base].next
    members[member].first = event


@compiled
def commit_all(events: Rows, base: int, members: Rows, partitions: Rows, now_us: int) -> None:
    """Commit every event that is finished now."""
    for member in range(len(members)):
        commit(events, base, members, partitions, member, now_us)


@compiled
def give_up(events: Rows, base: int, members: Rows, partitions: Rows, member: int, now_us: int) -> int:
    """Commit what a member has finished now; return the chain of what it has not, to be served again."""
    commit(events, base, members, partitions, member, now_us)
    lost = int(members[member].first)
    members[member].first = NONE
    members[member].free_us = now_us
    event = lost
    while event != NONE:
        events[event - base].done_us = NEVER
        event = int(events[event - base].next)
    return lost


@compiled
def acquire(
    events: Rows,
    base: int,
    members: Rows,
    partitions: Rows,
    service: Rows,
    heap: Heap,
    unit: int,
    now_us: int,
    until_us: int,
) -> bool:
    """Let the next free member serve the unit that begins with event `unit`; tell whether one can before `until_us`."""
    member = heap[0]
    at_us = max(members[member].free_us, events[unit - base].intended_us, now_us)
    if at_us >= until_us:
        return False
    commit(events, base, members, partitions, member, at_us)
    members[member].first = unit
    event = unit
    while event != NONE:
        row = event - base
        events[row].started_us = at_us
        at_us += service_us(service, events[row].demand_us, members[member].speed, at_us)
        events[row].done_us = at_us
        events[row].replica = member
        event = events[row].next
    members[member].free_us = at_us
    place = 0
    while True:
        child = 2 * place + 1
        if child >= len(heap):
            break
        if child + 1 < len(heap) and _sooner(members, heap[child + 1], heap[child]):
            child += 1
        if not _sooner(members, heap[child], member):
            break
        heap[place] = heap[child]
        place = child
    heap[place] = member
    return True


@compiled
def _sooner(members: Rows, one: int, other: int) -> bool:
    """Tell whether `one` is free before `other`."""
    if members[one].free_us != members[other].free_us:
        return bool(members[one].free_us < members[other].free_us)
    return one < other


@compiled
def serve(
    events: Rows,
    base: int,
    members: Rows,
    partitions: Rows,
    service: Rows,
    heap: Heap,
    event: int,
    end: int,
    now_us: int,
    until_us: int,
) -> int:
    """Let units from `event` on be acquired before `until_us`; return the first one left, or `end`."""
    while event < end and (
        not events[event - base].polls
        or acquire(events, base, members, partitions, service, heap, event, now_us, until_us)
    ):
        event += 1
    return event
