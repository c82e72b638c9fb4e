"""Compiled loops of `engine.Engine`.

Between commands the owners are fixed, so an event's outcome is known when it arrives (Lindley's recursion): it starts
when it has arrived and its replica has finished the previous event. This takes one step per event.

Each replica has a chain of its uncommitted events, in the order of service. Each partition without an owner has a chain
of its waiting events. A command at t takes back the events that have not started before t from the replicas that it
concerns, and assigns them again in the order of their numbers. Chains link event numbers. Event e is in row e − base.
"""
# ruff: noqa: PLR0917  # compiled functions take numbers and arrays one by one, by position

import numpy as np

from autoscaler.jit import compiled
from autoscaler.simulator.rows import NEVER, NONE, Rows


@compiled
def service_us(service: Rows, demand_us: float, replicas: Rows, replica: int, started_us: int) -> int:
    """Return the service time of an event that starts at `started_us`, µs."""
    slow = 1.0
    if service[0].slow_from_us <= started_us < service[0].slow_until_us:
        slow = replicas[replica].slow_factor
    return max(1, int(demand_us * slow / replicas[replica].speed + 0.5))


@compiled
def assign(events: Rows, base: int, replicas: Rows, partitions: Rows, service: Rows, event: int, until_us: int) -> None:
    """Follow the chain from `event`. Assign the events that arrive before `until_us` to their partitions' owners.

    Their numbers must be higher than those of the events that already wait at the same replica or partition. One
    function does it all, because a call for each event would take longer than the work.
    """
    while event != NONE and events[event - base].intended_us < until_us:
        row = event - base
        following = events[row].next
        events[row].next = NONE
        partition = events[row].partition
        owner = partitions[partition].owner
        if owner == NONE:
            events[row].done_us = NEVER
            if partitions[partition].first == NONE:
                partitions[partition].first = event
            else:
                events[partitions[partition].last - base].next = event
            partitions[partition].last = event
        else:
            events[row].replica = owner
            if service[0].gap_us:
                events[row].started_us = events[row].done_us = NEVER
                if replicas[owner].waiting == NONE:
                    replicas[owner].waiting = event
            else:
                started_us = max(replicas[owner].free_us, events[row].intended_us)
                done_us = started_us + service_us(service, events[row].demand_us, replicas, owner, started_us)
                events[row].started_us = started_us
                events[row].done_us = done_us
                replicas[owner].free_us = done_us
            if replicas[owner].first == NONE:
                replicas[owner].first = event
            else:
                events[replicas[owner].last - base].next = event
            replicas[owner].last = event
        event = following


@compiled
def close_gate(service: Rows, at_us: int) -> None:
    """Under a shared limit, set the earliest time of the next start, after the start of an event at `at_us`."""
    stretch = min(at_us // service[0].each_us, len(service) - 1)
    service[0].open_us = at_us + service[stretch].gap_us


@compiled
def begin_limited(events: Rows, base: int, replicas: Rows, service: Rows, now_us: int, until_us: int) -> None:
    """Under a shared limit, start the events that can start before `until_us`. Earlier arrivals must be assigned.

    The next event depends on all replicas, so outcomes are computed one by one, in order of time.
    """
    while True:
        open_us = max(service[0].open_us, now_us)
        event, owner, started_us = NONE, NONE, until_us
        for replica in range(len(replicas)):
            candidate = replicas[replica].waiting
            if candidate != NONE:
                ready_us = max(replicas[replica].free_us, events[candidate - base].intended_us, open_us)
                if ready_us < started_us or (ready_us == started_us and candidate < event):
                    event, owner, started_us = candidate, replica, ready_us
        if event == NONE:
            return
        row = event - base
        events[row].started_us = started_us
        events[row].done_us = started_us + service_us(service, events[row].demand_us, replicas, owner, started_us)
        replicas[owner].busy_us += events[row].done_us - max(replicas[owner].free_us, events[row].intended_us)
        replicas[owner].free_us = events[row].done_us
        replicas[owner].waiting = events[row].next
        close_gate(service, started_us)


@compiled
def arrive(events: Rows, base: int, replicas: Rows, partitions: Rows, service: Rows, event: int, until_us: int) -> int:
    """Follow the linked events from `event` on, and return the first that arrives at `until_us` or later.

    Those before it are counted and assigned to the owners of their partitions.
    """
    arrived = event
    while arrived != NONE and events[arrived - base].intended_us < until_us:
        partitions[events[arrived - base].partition].produced += 1
        arrived = events[arrived - base].next
    assign(events, base, replicas, partitions, service, event, until_us)
    return arrived


@compiled
def commit(events: Rows, base: int, replicas: Rows, partitions: Rows, replica: int, now_us: int) -> None:
    """Commit the finished events of a replica."""
    first = replicas[replica].first
    while first != NONE and events[first - base].done_us <= now_us:
        partitions[events[first - base].partition].committed += 1
        replicas[replica].done_us = events[first - base].done_us
        first = events[first - base].next
    replicas[replica].first = first


@compiled
def commit_all(events: Rows, base: int, replicas: Rows, partitions: Rows, now_us: int) -> None:
    """Commit all finished events."""
    for replica in range(len(replicas)):
        commit(events, base, replicas, partitions, replica, now_us)


@compiled
def _take_back(events: Rows, base: int, replicas: Rows, partitions: Rows, replica: int, now_us: int) -> int:
    """Return the chain of events that a replica has not started. A started event stays."""
    commit(events, base, replicas, partitions, replica, now_us)
    last, unstarted = NONE, int(replicas[replica].first)
    while unstarted != NONE and events[unstarted - base].started_us < now_us:
        last = unstarted
        unstarted = events[unstarted - base].next
    replicas[replica].free_us = now_us
    replicas[replica].waiting = NONE
    replicas[replica].last = last
    if last == NONE:
        replicas[replica].first = NONE
    else:
        events[last - base].next = NONE
        replicas[replica].free_us = max(now_us, events[last - base].done_us)
    return unstarted


@compiled
def take_started(events: Rows, base: int, replicas: Rows, partitions: Rows, replica: int, now_us: int) -> int:
    """Remove and return the event that a replica has started and not finished; NONE without one."""
    unstarted: int = _take_back(events, base, replicas, partitions, replica, now_us)
    first = int(replicas[replica].first)
    replicas[replica].first = unstarted
    return first


@compiled
def _merge(events: Rows, base: int, one: int, other: int) -> int:
    """Merge two chains that are sorted by number."""
    first = last = NONE
    while min(one, other) != NONE:
        if one < other:
            event, one = one, events[one - base].next
        else:
            event, other = other, events[other - base].next
        if last == NONE:
            first = event
        else:
            events[last - base].next = event
        last = event
    rest = other if one == NONE else one
    if last == NONE:
        return rest
    events[last - base].next = rest
    return first


@compiled
def reassign(events: Rows, base: int, replicas: Rows, partitions: Rows, service: Rows, now_us: int, lost: int) -> None:
    """Carry out the pending commands: assign the unstarted events of the replicas and partitions that they concern.

    lost: sorted chain of the uncommitted events of a killed replica; NONE: no replica was killed.
    """
    heads = np.full(len(replicas) + len(partitions) + 1, lost)
    count = 1
    for replica in range(len(replicas)):
        if replicas[replica].concerned:
            replicas[replica].concerned = False
            heads[count] = _take_back(events, base, replicas, partitions, replica, now_us)
            count += 1
    for partition in range(len(partitions)):
        if partitions[partition].concerned:
            partitions[partition].concerned = False
            heads[count] = partitions[partition].first
            partitions[partition].first = NONE
            count += 1
    while count > 1:
        half = count // 2
        for chain in range(half):
            heads[chain] = _merge(events, base, heads[chain], heads[count - 1 - chain])
        count -= half
    assign(events, base, replicas, partitions, service, heads[0], NEVER)


@compiled
def in_service_until(events: Rows, base: int, replicas: Rows, partitions: Rows, partition: int, now_us: int) -> int:
    """Return when the event of `partition` that is in service is finished, µs, or `now_us` if there is none."""
    until_us = now_us
    for replica in range(len(replicas)):
        commit(events, base, replicas, partitions, replica, now_us)
        event = replicas[replica].first
        while event != NONE and events[event - base].started_us < now_us:
            if events[event - base].partition == partition:
                until_us = max(until_us, events[event - base].done_us)
            event = events[event - base].next
    return until_us


@compiled
def first_unfinished(events: Rows, base: int, first: int, end: int, now_us: int) -> int:
    """Return the first unfinished event from `first` on, at most `end`."""
    for event in range(first, end):
        if events[event - base].done_us > now_us:
            return event
    return end


@compiled
def oldest_needed(events: Rows, base: int, replicas: Rows, partitions: Rows, end: int, now_us: int) -> int:
    """Return the smallest event number in any chain, at most `end`."""
    oldest = end
    for partition in range(len(partitions)):
        if partitions[partition].first != NONE:
            oldest = min(oldest, partitions[partition].first)
    for replica in range(len(replicas)):
        commit(events, base, replicas, partitions, replica, now_us)
        event = replicas[replica].first
        while event != NONE:  # started events are not sorted; unstarted ones are
            oldest = min(oldest, event)
            if events[event - base].started_us >= now_us:
                break
            event = events[event - base].next
    return oldest
