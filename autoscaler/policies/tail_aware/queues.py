"""Queue model of the replicas: which events are late if a plan is carried out.

A replica serves its events at rate μ, oldest first. Events of a slot arrive together (Lindley's recursion on slots).
"""

from typing import NamedTuple

import numpy as np

from autoscaler.jit import Flags, Floats, Ints, compiled


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
    present: int
    """Number of the present replicas."""
    each_s: float
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


class Paths(NamedTuple):
    """Arrivals that may follow."""

    events: Floats
    """Events by path, slot and partition. The first path is the worst for the group as a whole."""
    weights: Floats
    """Probability of each path."""
    sizes: Floats
    """Events of an interval to plan for, by partition: the highest forecast within the horizon."""

    @property
    def middle(self) -> int:
        """Number of the median path."""
        return int(self.weights.cumsum().searchsorted(0.5))

    def expected(self, slot_s: float) -> tuple[float, float, float, float]:
        """Return `Decision.expected`, from the events of all paths."""
        totals = self.events.sum(axis=(1, 2))
        order = np.argsort(totals)
        low, high = totals[order][np.minimum(self.weights[order].cumsum().searchsorted((0.1, 0.9)), len(order) - 1)]
        return self.events.shape[1] * slot_s, float(totals @ self.weights), float(low), float(high)


class Events(NamedTuple):
    """Events by slot, partition and path, the waiting ones first; whether a slot has any; and sums of each path."""

    each: Floats
    past: int
    """Slots of the waiting events."""
    filled: Flags
    by_slot: Floats
    by_partition: Floats


def joined(waiting: Floats, paths: Floats) -> Events:
    """Return the waiting events with the paths that follow."""
    past, by_slot = len(waiting), paths.sum(axis=2)
    each = np.empty((past + paths.shape[1], paths.shape[2], len(paths)))
    each[:past], each[past:] = waiting[:, :, None], paths.transpose(1, 2, 0)
    return Events(each, past, np.concatenate((waiting.any(axis=1), by_slot.any(axis=0))), by_slot, paths.sum(axis=1))


@compiled
def late_of_plans(events: Events, plans: Ints, base: Floats, group: Group, grid: Grid) -> Floats:
    """Return the late events by kind, plan and path: those that no later decision can save, and all.

    plans: owners by plan and partition. base: `late_by_replica` of the first plan. For all others, only replicas for
    which something differs from it are computed.
    """
    late = np.zeros((2, len(plans), events.each.shape[2]))
    for plan in range(len(plans)):
        owners, affected = plans[plan], np.zeros(len(group.rates), np.bool_)
        for partition in np.flatnonzero(owners != plans[0]):
            for replica in (owners[partition], plans[0, partition], group.serving[partition]):
                affected[replica] = True
        if group.stops_all and (owners != group.owners).any():
            affected[:] = True
        some = np.flatnonzero(affected[owners] | affected[group.serving])
        those = late_by_replica(events, owners, some, group, grid)
        for replica in range(len(affected)):
            for kind in range(2):
                for path in range(late.shape[2]):
                    own, same = those[replica, kind, path], base[replica, kind, path]
                    late[kind, plan, path] += own if affected[replica] else same
    return late


@compiled
def _handovers(owners: Ints, group: Group) -> tuple[Floats, Floats]:
    """Return until when the previous replica serves a partition, and from when its owner does, seconds."""
    switch_s, ready_s = np.zeros(len(owners)), group.in_handover_s.copy()
    further_s = group.each_s * max(0, owners.max() - group.present)  # new replicas slow each other
    for partition in np.flatnonzero(owners != group.serving):
        owner = owners[partition]
        switch_s[partition] = group.starting_s[owner] + (further_s if owner >= group.present else 0.0)
        ready_s[partition] = max(ready_s[partition], switch_s[partition] + group.pause_s)
    if group.stops_all and (owners != group.owners).any():
        stop_s = switch_s.max() + group.pause_s
        ready_s = np.maximum(ready_s, np.where(switch_s > 0.0, stop_s, group.pause_s))
    return switch_s, ready_s


@compiled
def late_by_replica(events: Events, owners: Ints, some: Ints, group: Group, grid: Grid) -> Floats:
    """Return the late events by replica, kind and path: those due from now to `saved_s`, then all.

    The events of the partitions `some` are served slot by slot, on all paths at once. A replica begins to serve
    partitions that it takes over when all of them are ready; until then it holds their events.
    """
    each, past, rates, (slots, _, paths) = events.each, events.past, group.rates, events.each.shape
    switch_s, ready_s = _handovers(owners, group)
    release_s, used = np.zeros(len(rates)), np.zeros(len(rates), np.bool_)
    for partition in some:
        owner, used[group.serving[partition]] = owners[partition], True
        release_s[owner], used[owner] = max(release_s[owner], ready_s[partition]), True
    moves = ((owners != group.serving) | (ready_s > 0.0))[some]
    settled, moving, active, is_open = some[~moves], some[moves], np.flatnonzero(used), release_s <= 0.0
    late, more, free_s = np.zeros((len(rates), 2, paths)), np.zeros((len(rates), paths)), np.zeros((len(rates), paths))
    held, holds = np.empty((len(rates), slots, paths)), np.zeros((len(rates), slots), np.bool_)
    for slot in range(slots + 1):
        if slot < slots and not events.filled[slot]:
            continue  # loops over empty slots would cost more than the events
        came_s = (slot - past) * grid.slot_s + grid.begin_s if slot < slots else np.inf
        at_s = max(0.0, came_s)
        for replica in active:
            if is_open[replica] or came_s < release_s[replica]:
                continue
            is_open[replica] = True
            for earlier in np.flatnonzero(holds[replica]):
                earlier_s = (earlier - past) * grid.slot_s + grid.begin_s
                begin_s = max(release_s[replica], earlier_s)
                _serve(late[replica], free_s[replica], begin_s, held[replica, earlier], earlier_s, rates[replica], grid)
        if slot == slots:
            break
        for partition in settled:
            owner = owners[partition]
            for path in range(paths):
                more[owner, path] += each[slot, partition, path]
        for partition in moving:
            owner, before, until_s = owners[partition], group.serving[partition], switch_s[partition]
            if not is_open[owner] and not holds[owner, slot]:
                holds[owner, slot], held[owner, slot] = True, 0.0
            stays, taken = before >= 0 and at_s < until_s, more[owner] if is_open[owner] else held[owner, slot]
            for path in range(paths):  # without branches, so that it is computed for several paths at once
                count, begin_s = each[slot, partition, path], max(at_s, free_s[before, path])
                own = count if stays and begin_s + more[before, path] / rates[before] < until_s else 0.0
                more[before, path] += own
                taken[path] += count - own
        for replica in active:
            _serve(late[replica], free_s[replica], at_s, more[replica], came_s, rates[replica], grid)
            more[replica] = 0.0
    if grid.extrapolate:  # later arrivals are late, too, until the queue at the end of the path is served
        end_s = (slots - past) * grid.slot_s
        for path in range(paths):
            for partition in some:
                more[owners[partition], path] += events.by_partition[path, partition] / end_s
            for replica in active:
                behind_s, load = max(0.0, free_s[replica, path] - end_s - grid.target_s), more[replica, path]
                late[replica, 1, path] += load * behind_s / max(0.05, 1.0 - load / rates[replica])
    return late


@compiled
def _serve(late: Floats, free_s: Floats, at_s: float, events: Floats, came_s: float, rate: float, grid: Grid) -> None:
    """Serve events by path, which arrived at `came_s`, from `at_s` on or once the replica is free. Count late ones."""
    due_s = came_s + grid.target_s
    is_due = 1.0 if 0.0 < due_s <= grid.saved_s else 0.0
    for path in range(len(events)):
        free = max(free_s[path], at_s) + events[path] / rate
        free_s[path] = free if events[path] > 0.0 else free_s[path]
        over = min(events[path], max(0.0, (free - due_s) * rate))
        late[1, path] += over
        late[0, path] += over * is_due


@compiled
def backlogs(paths: Floats, rate: float, slot_s: float, waits: float = 0.0) -> Floats:
    """Return the highest backlog on each path if all events were served at `rate`. paths: by path and slot."""
    backlog, worst = np.full(len(paths), waits), np.full(len(paths), waits)
    for slot in range(paths.shape[1]):
        for path in range(len(paths)):
            backlog[path] += paths[path, slot]
            worst[path] = max(worst[path], backlog[path])
            backlog[path] = max(0.0, backlog[path] - rate * slot_s)
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
