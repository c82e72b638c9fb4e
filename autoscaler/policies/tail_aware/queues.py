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
    """Time until each replica has started, seconds; of new ones, if one starts alone."""
    rates: Floats
    """Service rate (μ) of each replica, events/s."""
    pause_s: float
    """Pause of a partition that moves."""
    stops_all: bool
    """Whether all partitions pause if one moves."""
    present: int = 0
    """Number of the present replicas."""
    each_s: float = 0.0
    """How much longer starts take for each further new replica, seconds."""


class Grid(NamedTuple):
    """Times in seconds from now."""

    slot_s: float
    begin_s: float
    """Offset of the arrivals within their slot."""
    target_s: float
    saved_s: float
    """Events that are due later can still be saved by the next decision."""
    extrapolate: bool
    """Whether late events count until the queues at the end of a path are served."""


class Execution(NamedTuple):
    """Execution of a plan."""

    settled: Ints
    """The given partitions that their owner serves already."""
    moving: Ints
    """The other given partitions. The arrays below have an entry for each partition or replica."""
    before: Ints
    owners: Ints
    switch_s: Floats
    """Time until which the previous replica serves the partition, because its successor starts."""
    release_s: Floats
    """Time from which a replica serves all its partitions."""
    rates: Floats
    holding: Ints
    """Replicas that hold events until `release_s`."""


@compiled
def late_of_plans(waiting: Floats, paths: Floats, plans: Ints, group: Group, grid: Grid) -> Floats:
    """Return the late events by kind, plan and path: those that no later decision can save, and all.

    waiting: by age and partition. paths: by path, slot and partition. plans: owners by plan and partition. The first
    plan is computed completely. For all others, only replicas for which something differs from it are computed.
    """
    late, partitions, events = np.zeros((2, len(plans), len(paths))), plans.shape[1], _joined(waiting, paths)
    busy, past = events.sum(axis=2) > 0.0, len(waiting)
    base = _late_by_replica(events, busy, past, _execution(plans[0], group, np.arange(partitions)), grid)
    for plan in range(len(plans)):
        owners, affected = plans[plan], np.zeros(len(group.rates), np.bool_)
        for partition in range(partitions):
            if owners[partition] != plans[0, partition]:
                for replica in (owners[partition], plans[0, partition], group.serving[partition]):
                    affected[replica] = True
        if group.stops_all and (owners != group.owners).any():
            affected[:] = True
        those = base
        if affected.any():
            some = np.flatnonzero(affected[owners] | affected[group.serving])
            those = _late_by_replica(events, busy, past, _execution(owners, group, some), grid)
        for replica in range(len(affected)):
            late[:, plan] += (those if affected[replica] else base)[:, :, replica]
    return late


@compiled
def late_by_replica(waiting: Floats, paths: Floats, owners: Ints, group: Group, grid: Grid) -> Floats:
    """Return the late events by kind, path and replica: those due from now to `saved_s`, then all."""
    execution, events = _execution(owners, group, np.arange(len(owners))), _joined(waiting, paths)
    return _late_by_replica(events, events.sum(axis=2) > 0.0, len(waiting), execution, grid)


@compiled
def _joined(waiting: Floats, paths: Floats) -> Floats:
    """Return paths that begin with the waiting events."""
    events = np.empty((len(paths), len(waiting) + paths.shape[1], paths.shape[2]))
    events[:, : len(waiting)], events[:, len(waiting) :] = waiting, paths
    return events


@compiled
def _execution(owners: Ints, group: Group, some: Ints) -> Execution:
    switch_s, ready_s, release_s = np.zeros(len(owners)), group.in_handover_s.copy(), np.zeros(len(group.rates))
    further_s = group.each_s * max(0, owners.max() - group.present)  # new replicas slow each other
    for partition in range(len(owners)):
        owner = owners[partition]
        if owner >= 0 and owner != group.serving[partition]:
            switch_s[partition] = group.starting_s[owner] + (further_s if owner >= group.present else 0.0)
            ready_s[partition] = max(ready_s[partition], switch_s[partition] + group.pause_s)
    if group.stops_all and (owners != group.owners).any():
        stop_s = switch_s.max() + group.pause_s
        ready_s = np.maximum(ready_s, np.where(switch_s > 0.0, stop_s, group.pause_s))
    for partition in some:
        if owners[partition] >= 0:
            release_s[owners[partition]] = max(release_s[owners[partition]], ready_s[partition])
    moving = (owners != group.serving) | (owners < 0) | (ready_s > 0.0)
    settled, moved, holding = some[~moving[some]], some[moving[some]], np.flatnonzero(release_s > 0.0)
    return Execution(settled, moved, group.serving, owners, switch_s, release_s, group.rates, holding)


@compiled
def _late_by_replica(paths: Floats, busy: Flags, past: int, execution: Execution, grid: Grid) -> Floats:
    """Serve the events of successive slots on each path, or hold them until a handover ends.

    The first `past` slots have the events that wait now. A call for each slot would cost more than its events.
    """
    settled, moving, before, owners, switches_s, release_s, rates, holding = execution
    slot_s, begin_s, target_s, saved_s, extrapolate = grid
    slots, replicas = paths.shape[1], len(rates)
    late, more, held = (
        np.zeros((len(paths), 2, replicas)),
        np.zeros(replicas),
        np.zeros((len(holding) and replicas, slots)),
    )
    for path in range(len(paths)):
        free_s, is_open, following_s = np.zeros(replicas), release_s <= 0.0, 0.0 if len(holding) else np.inf
        for slot in range(slots):
            came_s = (slot - past) * slot_s + begin_s
            at_s = max(0.0, came_s) if slot >= past else 0.0
            if slot >= past and came_s >= following_s:
                following_s = _release(late[path], came_s, past, held, free_s, is_open, execution, grid)
            if not busy[path, slot]:
                continue
            for partition in settled:
                more[owners[partition]] += paths[path, slot, partition]
            for partition in moving:
                count, owner = paths[path, slot, partition], owners[partition]
                if count <= 0.0:
                    continue
                previous, switch_s = before[partition], switches_s[partition]
                if (
                    at_s < switch_s
                    and previous >= 0
                    and max(at_s, free_s[previous]) + more[previous] / rates[previous] < switch_s
                ):
                    more[previous] += count
                elif owner >= 0 and not is_open[owner]:
                    held[owner, slot] += count
                elif owner >= 0:
                    more[owner] += count
            for replica in range(replicas):
                if more[replica] > 0.0:
                    due_s = came_s + target_s
                    free_s[replica], over = _serve(free_s[replica], at_s, more[replica], due_s, rates[replica])
                    more[replica] = 0.0
                    if over > 0.0:
                        late[path, 1, replica] += over
                        late[path, 0, replica] += over if 0.0 < due_s <= saved_s else 0.0
        if following_s < np.inf:
            _release(late[path], np.inf, past, held, free_s, is_open, execution, grid)
        if extrapolate:
            _extrapolate(late[path], paths[path, past:], free_s, execution, grid)
    return late.transpose(1, 0, 2)


@compiled
def _release(
    late: Floats, until_s: float, past: int, held: Floats, free_s: Floats, is_open: Flags, plan: Execution, grid: Grid
) -> float:
    """Serve the events that waited for a handover that ends until then, oldest first. Return when the next one ends."""
    following_s = np.inf
    for replica in plan.holding:
        release_s, rate = plan.release_s[replica], plan.rates[replica]
        if release_s > until_s:
            following_s = min(following_s, release_s)
        for slot in range(0 if is_open[replica] or release_s > until_s else held.shape[1]):
            if held[replica, slot] > 0.0:
                came_s = (slot - past) * grid.slot_s + grid.begin_s
                at_s, due_s = max(release_s, came_s), came_s + grid.target_s
                free_s[replica], over = _serve(free_s[replica], at_s, held[replica, slot], due_s, rate)
                late[1, replica] += over
                late[0, replica] += over if 0.0 < due_s <= grid.saved_s else 0.0
                held[replica, slot] = 0.0
        is_open[replica] = release_s <= until_s
    return following_s


@compiled
def _serve(free_s: float, at_s: float, events: float, due_s: float, rate: float) -> tuple[float, float]:
    """Return when a replica has served these events, and how many of them are late. free_s: when it has the others."""
    done_s = max(free_s, at_s) + events / rate
    return done_s, min(events, max(0.0, (done_s - due_s) * rate))


@compiled
def _extrapolate(late: Floats, path: Floats, free_s: Floats, execution: Execution, grid: Grid) -> None:
    """Add the later arrivals that are late because of the queue at the end of the path, until it is served."""
    end_s, load = len(path) * grid.slot_s, np.zeros(len(free_s))
    for some in (execution.settled, execution.moving):
        for partition in some:
            if execution.owners[partition] >= 0:
                load[execution.owners[partition]] += path[:, partition].sum() / end_s
    for replica in range(len(free_s)):
        behind_s = free_s[replica] - end_s - grid.target_s
        if behind_s > 0.0:
            late[1, replica] += load[replica] * behind_s / max(0.05, 1.0 - load[replica] / execution.rates[replica])


@compiled
def backlogs(paths: Floats, rate: float, slot_s: float, waits: float = 0.0) -> Floats:
    """Return the highest backlog on each path if all events were served at `rate`. paths: by path and slot."""
    worst = np.full(len(paths), waits)
    for path in range(len(paths)):
        backlog = waits
        for slot in range(paths.shape[1]):
            backlog += paths[path, slot]
            worst[path] = max(worst[path], backlog)
            backlog = max(0.0, backlog - rate * slot_s)
    return worst


@compiled
def pooled_need(paths: Floats, waits: float, rate: float, slot_s: float, target_s: float, most: int) -> Ints:
    """Return how few replicas, with their events shared equally, serve each path in time. paths: by path and slot."""
    needs = np.ones(len(paths), np.int64)
    for path in range(len(paths)):
        high = most
        while needs[path] < high:
            count = (needs[path] + high) // 2
            worst = backlogs(paths[path : path + 1], count * rate, slot_s, waits)[0]
            if worst <= count * rate * target_s * (1 + 1e-9):
                high = count
            else:
                needs[path] = count + 1
    return needs
