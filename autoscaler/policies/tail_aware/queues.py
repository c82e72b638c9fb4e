"""Queue model of the replicas: which events are late if a plan is carried out.

A replica serves its events at rate μ, oldest first. Events of a slot arrive together (Lindley's recursion on slots).
"""

from typing import NamedTuple

import numpy as np

from autoscaler.jit import compiled
from autoscaler.policies.tail_aware.arrivals import Flags, Floats, Ints


class Group(NamedTuple):
    """The group at a decision. Replicas are numbered. New replicas have the numbers after the present ones."""

    owners: Ints
    """Planned replica of each partition; −1: none."""
    serving: Ints
    """Replica that serves each partition now; −1: none."""
    in_handover_s: Floats
    """Remaining pause of each partition, seconds."""
    starting_s: Floats
    """Time until each replica has started, seconds."""
    rates: Floats
    """Service rate (μ) of each replica, events/s."""
    pause_s: float
    """Pause of a partition that moves."""
    stops_all: bool
    """Whether all partitions pause if one moves."""


class Grid(NamedTuple):
    """Times in seconds from now."""

    slot_s: float
    begin_s: float
    """Offset of the arrivals within their slot."""
    target_s: float
    saved_s: float
    """Events that are due later can still be saved by the next decision."""
    extrapolate: bool
    """Whether the queues at the end of a path count until they are served."""


class Execution(NamedTuple):
    """Execution of a plan for some partitions. The first four have an entry per partition in question."""

    some: Ints
    """The partitions."""
    before: Ints
    owners: Ints
    switch_s: Floats
    """Until then the previous replica serves the partition, because its successor starts."""
    ready_s: Floats
    """From then on its successor serves it; 0: it does already."""
    rates: Floats
    """μ of each replica."""


@compiled
def late_of_plans(waiting: Floats, paths: Floats, plans: Ints, group: Group, grid: Grid) -> tuple[Floats, Floats]:
    """Return the late events of each plan on each path: those that no later decision can save, and all.

    waiting: by age and partition. paths: by path, slot and partition. plans: owners by plan and partition. The first
    plan is computed completely. For all others, only replicas for which something differs from it are computed.
    """
    partitions, replicas, busy = plans.shape[1], len(group.rates), _busy(waiting, paths)
    lost, every = np.zeros((len(plans), len(paths))), np.zeros((len(plans), len(paths)))
    base_lost, base_every = np.zeros((len(paths), replicas)), np.zeros((len(paths), replicas))
    for plan in range(len(plans)):
        owners = plans[plan]
        affected = np.zeros(replicas, np.bool_)
        switch_s, ready_s, moves = execution_times(owners, group)
        for partition in range(partitions):
            if plan == 0 or owners[partition] != plans[0, partition]:
                for replica in (owners[partition], plans[0, partition], group.serving[partition]):
                    if replica >= 0:
                        affected[replica] = True
        if plan == 0 or (group.stops_all and moves):
            affected[:] = True
        these = np.flatnonzero(affected)
        place = np.full(replicas + 1, -1)  # the last one stands for no replica
        place[these] = np.arange(len(these))
        some = np.flatnonzero((place[owners] >= 0) | (place[group.serving] >= 0))
        execution = Execution(
            some, place[group.serving[some]], place[owners[some]], switch_s[some], ready_s[some], group.rates[these]
        )
        late = _late_by_replica(waiting, paths, busy, execution, grid)
        if plan == 0:
            base_lost, base_every = late[0], late[1]
        for path in range(len(paths)):
            lost[plan, path] = late[0, path].sum()
            every[plan, path] = late[1, path].sum()
            for replica in range(replicas):
                if not affected[replica]:
                    lost[plan, path] += base_lost[path, replica]
                    every[plan, path] += base_every[path, replica]
    return lost, every


@compiled
def execution_times(owners: Ints, group: Group) -> tuple[Floats, Floats, bool]:
    """Return `Execution.switch_s` and `ready_s` of all partitions, and whether any of them moves."""
    switch_s, ready_s = np.zeros(len(owners)), group.in_handover_s.copy()
    moves = False
    for partition in range(len(owners)):
        owner = owners[partition]
        moves = moves or owner != group.owners[partition]
        if owner >= 0 and owner != group.serving[partition]:
            switch_s[partition] = group.starting_s[owner]
            ready_s[partition] = max(ready_s[partition], switch_s[partition] + group.pause_s)
    if group.stops_all and moves:
        stop_s = switch_s.max() + group.pause_s
        for partition in range(len(owners)):
            ready_s[partition] = max(ready_s[partition], stop_s if switch_s[partition] > 0.0 else group.pause_s)
    return switch_s, ready_s, moves


@compiled
def late_by_replica(waiting: Floats, paths: Floats, execution: Execution, grid: Grid) -> Floats:
    """Return the late events by kind, path and replica: those due from now to `saved_s`, then all."""
    return _late_by_replica(waiting, paths, _busy(waiting, paths), execution, grid)


@compiled
def _busy(waiting: Floats, paths: Floats) -> Flags:
    """Return whether there are events by path and slot. The last row is for the waiting events."""
    busy = np.zeros((len(paths) + 1, max(len(waiting), paths.shape[1])), np.bool_)
    for path in range(len(paths)):
        for slot in range(paths.shape[1]):
            busy[path, slot] = paths[path, slot].any()
    for slot in range(len(waiting)):
        busy[len(paths), slot] = waiting[slot].any()
    return busy


@compiled
def _late_by_replica(waiting: Floats, paths: Floats, busy: Flags, execution: Execution, grid: Grid) -> Floats:
    replicas, past, slots = len(execution.rates), len(waiting), paths.shape[1]
    release_s = np.zeros(replicas)
    for place in range(len(execution.some)):
        owner = execution.owners[place]
        if owner >= 0:
            release_s[owner] = max(release_s[owner], execution.ready_s[place])
    holding = bool((release_s > 0.0).any())
    held = np.zeros((past + slots if holding else 0, replicas))
    free_s, late_now = np.zeros(replicas), np.zeros((2, replicas))
    is_open = release_s <= 0.0
    for slot in range(past):
        if busy[len(paths), slot]:
            _arrive(late_now, waiting[slot], slot, past, held, free_s, is_open, execution, grid)
    late = np.zeros((2, len(paths), replicas))
    for path in range(len(paths)):
        free, opened, total = free_s.copy(), is_open.copy(), late_now.copy()
        waits = held.copy() if holding else held
        for slot in range(slots):
            if not busy[path, slot]:
                continue
            if holding:
                at_s = slot * grid.slot_s + grid.begin_s
                for replica in range(replicas):
                    if not opened[replica] and at_s >= release_s[replica]:
                        _release(total, replica, release_s[replica], past, waits, free, execution.rates, grid)
                        opened[replica] = True
            _arrive(total, paths[path, slot], past + slot, past, waits, free, opened, execution, grid)
        for replica in range(replicas):
            if not opened[replica]:
                _release(total, replica, release_s[replica], past, waits, free, execution.rates, grid)
        if grid.extrapolate:
            _extrapolate(total, paths[path], free, execution, grid)
        late[:, path] = total
    return late


@compiled
def _arrive(
    late: Floats,
    events: Floats,
    slot: int,
    past: int,
    held: Floats,
    free_s: Floats,
    is_open: Flags,
    execution: Execution,
    grid: Grid,
) -> None:
    """Serve the events of a slot, or hold them until a handover ends."""
    came_s = (slot - past) * grid.slot_s + grid.begin_s
    at_s = max(0.0, came_s) if slot >= past else 0.0
    rates, more = execution.rates, np.zeros(len(free_s))
    for place in range(len(execution.some)):
        count, owner = events[execution.some[place]], execution.owners[place]
        if count <= 0.0:
            continue
        before, switch_s = execution.before[place], execution.switch_s[place]
        if before >= 0 and max(at_s, free_s[before]) + more[before] / rates[before] < switch_s:
            more[before] += count
        elif owner >= 0 and execution.ready_s[place] > 0.0 and not is_open[owner]:
            held[slot, owner] += count
        elif owner >= 0:
            more[owner] += count
    for replica in range(len(free_s)):
        if more[replica] > 0.0:
            _serve(late, replica, at_s, more[replica], came_s + grid.target_s, free_s, rates[replica], grid.saved_s)


@compiled
def _release(
    late: Floats, replica: int, open_s: float, past: int, held: Floats, free_s: Floats, rates: Floats, grid: Grid
) -> None:
    """Serve the events that waited for the end of a handover, oldest first."""
    for slot in range(len(held)):
        if held[slot, replica] > 0.0:
            came_s = (slot - past) * grid.slot_s + grid.begin_s
            at_s, due_s = max(open_s, came_s), came_s + grid.target_s
            _serve(late, replica, at_s, held[slot, replica], due_s, free_s, rates[replica], grid.saved_s)
            held[slot, replica] = 0.0


@compiled
def _serve(
    late: Floats, replica: int, at_s: float, events: float, due_s: float, free_s: Floats, rate: float, saved_s: float
) -> None:
    free_s[replica] = max(free_s[replica], at_s) + events / rate
    more = min(events, max(0.0, (free_s[replica] - due_s) * rate))
    late[1, replica] += more
    if 0.0 < due_s <= saved_s:
        late[0, replica] += more


@compiled
def _extrapolate(late: Floats, path: Floats, free_s: Floats, execution: Execution, grid: Grid) -> None:
    """Add the later arrivals that are late because of the queue at the end of the path, until it is served."""
    end_s, load = len(path) * grid.slot_s, np.zeros(len(free_s))
    for place in range(len(execution.some)):
        if execution.owners[place] >= 0:
            load[execution.owners[place]] += path[:, execution.some[place]].sum() / end_s
    for replica in range(len(free_s)):
        behind_s = free_s[replica] - end_s - grid.target_s
        if behind_s > 0.0:
            late[1, replica] += load[replica] * behind_s / max(0.05, 1.0 - load[replica] / execution.rates[replica])


@compiled
def backlogs(paths: Floats, rate: float, slot_s: float) -> Floats:
    """Return the highest backlog on each path if all events were served at `rate`. paths: by path and slot."""
    worst = np.zeros(len(paths))
    for path in range(len(paths)):
        waits = 0.0
        for slot in range(paths.shape[1]):
            waits += paths[path, slot]
            worst[path] = max(worst[path], waits)
            waits = max(0.0, waits - rate * slot_s)
    return worst


@compiled
def pooled_need(paths: Floats, waits: float, rate: float, slot_s: float, target_s: float, most: int) -> Ints:
    """Return how few replicas, with their events shared equally, serve each path in time. paths: by path and slot."""
    needs = np.zeros(len(paths), np.int64)
    for path in range(len(paths)):
        low, high = 1, most
        while low < high:
            count = (low + high) // 2
            queue, fits = waits, waits <= count * rate * target_s
            for slot in range(paths.shape[1]):
                queue += paths[path, slot]
                if queue > count * rate * target_s * (1 + 1e-9):
                    fits = False
                    break
                queue = max(0.0, queue - count * rate * slot_s)
            if fits:
                high = count
            else:
                low = count + 1
        needs[path] = low
    return needs
