"""Queue model of the replicas: which events are late.

A replica serves its events at rate μ, oldest first. The events of one slot arrive together, at the time of the first
(the worst case). Each is due W later (Lindley's recursion on slots).
"""

from math import erf, exp, inf, pi, sqrt
from typing import Final, NamedTuple

import numpy as np

from autoscaler.jit import compiled
from autoscaler.policies.tail_aware.situation import Floats, Ints

HALVINGS: Final = 12
"""Steps of the search for a replica's capacity: to within 1/4096 of μ."""
IDLE: Final = 0.05
"""Minimum idle share of a replica's time in which its remaining queue is assumed to be served."""
NEGLIGIBLE: Final = 1e-6
"""Events."""


def capacity_of(row: Floats, service_rate: float, slot_s: float, target_s: float) -> float:
    """Return how many events per interval a replica serves in time where they lie as in `row`.

    row: events by slot, of intervals one after the other, as multiples of what an interval has on average. Between μ·W
    (all at once) and μ·interval (evenly).
    """
    most = service_rate * (len(row) * slot_s) / float(row.sum())
    return _capacity_up_to(most, row, service_rate, slot_s, target_s)


@compiled
def _capacity_up_to(most: float, row: Floats, service_rate: float, slot_s: float, target_s: float) -> float:
    low, middle, high = 0.0, most, most
    for halving in range(HALVINGS + 1):
        free_s = late = 0.0
        for slot in range(len(row)):
            at_s = slot * slot_s
            free_s, more = _serve(free_s, at_s, row[slot] * middle, at_s + target_s, service_rate, inf)
            late += more
        if late > NEGLIGIBLE:
            high = middle
        elif halving == 0:
            return most
        else:
            low = middle
        middle = (low + high) / 2
    return max(low, NEGLIGIBLE)


class Events(NamedTuple):
    """Waiting events and possible arrivals."""

    waiting: Floats
    """Events that wait, by age and partition, shape (slots, partitions); row i arrived (slots − i) slots ago."""
    expected: Floats
    """Events that will arrive in each scenario, shape (scenarios, slots, partitions)."""
    surprises: Floats
    """The same for scenarios of forecast errors."""
    variance: Floats
    """Variance of the expected sum over slots, by partition."""


class PlanExecution(NamedTuple):
    """Execution of a plan, per partition: who serves it now, who will, and when the switch happens. −1: no replica."""

    before: Ints
    """Replica that serves it now."""
    owners: Ints
    """Replica that serves it under the plan."""
    switch_s: Floats
    """Time until which the previous replica serves it because its successor is starting; 0: it is not starting."""
    ready_s: Floats
    """Time from which the successor serves it; 0: it does already. A replica waits for the last of its partitions.
    Events are due as before."""
    service_rate: Floats
    """μ of each replica, events/s."""


class TimeGrid(NamedTuple):
    """Times in s from now."""

    slot_s: float
    begin_s: float
    """Offset of the arrivals within a slot."""
    target_s: float
    until_s: float
    """Events that are served later do not count."""
    saved_s: float
    """Events that are due later can still be saved by the next decision."""
    tail_slots: int
    """Last slots of the grid, from which later arrivals are extrapolated."""
    extrapolate: bool
    """Whether arrivals after the grid count until the remaining queue is served: they are late, too."""


@compiled
def late_by_scenario(events: Events, some: Ints, execution: PlanExecution, grid: TimeGrid) -> Floats:
    """Return the late events of each replica in each scenario, shape (2 · scenarios + surprises, replicas).

    Rows: expected scenarios; the same without variance, only events that cannot be saved (due by `saved_s`); scenarios
    of forecast errors. some: the partitions in question, in rising order, to which `execution` applies.
    """
    scenarios = len(events.expected)
    late = np.zeros((2 * scenarios + len(events.surprises), len(execution.service_rate)))
    routes = _routes(some, execution, events.variance)
    now_s, idle_s = np.zeros(len(events.waiting)), np.zeros(len(execution.service_rate))
    there, waiting_s = _routed(routes, events.waiting, now_s, idle_s, execution.service_rate)
    first = _first(there, execution.service_rate, grid)
    for scenario in range(scenarios):
        coming = _coming_to(routes, events.expected[scenario], waiting_s, execution.service_rate, grid)
        late[scenario], late[scenarios + scenario] = _served(routes, there, coming, first, execution.service_rate, grid)
    for scenario in range(len(events.surprises)):
        coming = _coming_to(routes, events.surprises[scenario], waiting_s, execution.service_rate, grid)
        late[2 * scenarios + scenario] = _served(routes, there, coming, first, execution.service_rate, grid)[1]
    return late


@compiled
def late_of_change(
    staying: Floats,
    their_rates: Floats,
    everything: bool,
    planned: Ints,
    events: Events,
    execution: PlanExecution,
    grid: TimeGrid,
) -> Floats:
    """Return `late_by_scenario` of all partitions, where only replicas are looked at for which something changes.

    staying: the same if nothing changed, of the replicas there are now. their_rates: μ of each of them then.
    everything: it changes for all. planned: who would serve each partition if nothing changed.
    """
    before, owners, rates = execution.before, execution.owners, execution.service_rate
    replicas, present = len(rates), len(their_rates)
    changed = np.zeros(replicas, np.int64)
    for replica in range(present):
        changed[replica] = everything or rates[replica] != their_rates[replica]
    for partition in range(len(owners)):
        if owners[partition] != before[partition] or owners[partition] != planned[partition]:
            changed[owners[partition]] = 1
            if before[partition] >= 0:
                changed[before[partition]] = 1
            if planned[partition] >= 0:
                changed[planned[partition]] = 1
    these = np.flatnonzero(changed)
    place = np.full(replicas + 1, -1)  # the last one stands for no owner
    place[these] = np.arange(len(these))
    some = np.flatnonzero(place[owners] >= 0)
    switch_s, ready_s = execution.switch_s[some], execution.ready_s[some]
    there = PlanExecution(place[before[some]], place[owners[some]], switch_s, ready_s, rates[these])
    late_there = late_by_scenario(events, some, there, grid)
    late = np.zeros((len(staying), replicas))
    for scenario in range(len(staying)):
        late[scenario, :present] = staying[scenario]
        for index in range(len(these)):
            late[scenario, these[index]] = late_there[scenario, index]
    return late


@compiled
def plan_execution(
    before: Ints,
    planned: Ints,
    in_handover_s: Floats,
    starting_s: Floats,
    owners: Ints,
    start_s: float,
    pause_s: float,
    stops_all: bool,
) -> tuple[Floats, Floats]:
    """Return `PlanExecution.switch_s` and `PlanExecution.ready_s`.

    before: who serves each partition now. planned: who does, or will once it has started, if nothing changes.
    in_handover_s: how long handovers still take that are under way. starting_s: how long each replica that is there
    still takes to start; new ones serve from start_s. pause_s: of a partition that moves, stops_all: of all when one
    moves.
    """
    switch_s, ready_s = np.zeros(len(owners)), in_handover_s.copy()
    moves = False
    for partition in range(len(owners)):
        owner = owners[partition]
        moves = moves or owner != planned[partition]
        if owner != before[partition]:
            switch_s[partition] = starting_s[owner] if owner < len(starting_s) else start_s
            ready_s[partition] = switch_s[partition] + pause_s
    if stops_all and moves:
        ready_s = np.maximum(ready_s, pause_s)
    return switch_s, ready_s


@compiled
def mean_late(late: Floats, chances: Floats, surprise_chances: Floats) -> float:
    """Return the mean of the late events over all that may come, of what `late_by_scenario` says.

    A forecast error is observed at the next tick: events that are due after `saved_s` can still be saved then.
    """
    scenarios = len(chances)
    mean, usual = 0.0, 0.0
    for scenario in range(scenarios):
        mean += chances[scenario] * late[scenario].sum()
        usual += chances[scenario] * late[scenarios + scenario].sum()
    for scenario in range(len(surprise_chances)):
        mean += surprise_chances[scenario] * max(0.0, late[2 * scenarios + scenario].sum() - usual)
    return mean


class _Routes(NamedTuple):
    """Replicas of some partitions over time."""

    partitions: Ints
    before: Ints
    """Replicas that serve them until `switch_s`."""
    owners: Ints
    switch_s: Floats
    """End of service by the previous replica; −1: it has ended."""
    held_s: Floats
    """End of the pause in which no replica serves them; −1: their owner serves them."""
    pause_s: Floats
    """Time until all partitions that move to each replica are ready."""
    spread: Floats
    """Variance of the arrivals of each replica."""


class _First(NamedTuple):
    """State of each replica after its waiting events are served."""

    free_s: Floats
    late: Floats
    lost: Floats
    """Late events that cannot be saved."""


@compiled
def _routes(some: Ints, execution: PlanExecution, variance: Floats) -> _Routes:
    owners, ready_s, replicas = execution.owners, execution.ready_s, len(execution.service_rate)
    pause_s, spread = np.zeros(replicas), np.zeros(replicas)
    until_s, held_s = np.full(len(some), -1.0), np.full(len(some), -1.0)
    for place in range(len(some)):
        owner = owners[place]
        if owner >= 0:
            pause_s[owner] = max(pause_s[owner], ready_s[place])
            spread[owner] += variance[some[place]]
    for place in range(len(some)):
        if owners[place] >= 0 and ready_s[place] > 0.0:
            held_s[place] = pause_s[owners[place]]
        if owners[place] >= 0 and execution.switch_s[place] > 0.0 and execution.before[place] >= 0:
            until_s[place] = execution.switch_s[place]
    return _Routes(some, execution.before, owners, until_s, held_s, pause_s, spread)


@compiled
def _coming_to(routes: _Routes, expected: Floats, waiting_s: Floats, service_rate: Floats, grid: TimeGrid) -> Floats:
    """Return `_routed` of the events that arrive. waiting_s: when each replica has served what waits for it now."""
    times_s = np.arange(len(expected), dtype=np.float64) * grid.slot_s + grid.begin_s
    return _routed(routes, expected, times_s, waiting_s.copy(), service_rate)[0]


@compiled
def _routed(
    routes: _Routes, events: Floats, times_s: Floats, free_s: Floats, service_rate: Floats
) -> tuple[Floats, Floats]:
    """Return events by slot and replica; from the middle on those that a handover to it holds up.

    And when each replica is free after all of it. events: by slot, which is there at `times_s`, and partition. free_s:
    when each replica is before; changed. The previous replica of a partition passes on the events that it has not
    served when its successor has started.
    """
    replicas = len(routes.pause_s)
    there = np.zeros((len(events), 2 * replicas))
    for slot in range(len(events)):
        at_s = times_s[slot]
        for place in range(len(routes.partitions)):
            to = routes.owners[place]
            if to < 0:
                continue
            if at_s < routes.switch_s[place] and free_s[routes.before[place]] < routes.switch_s[place]:
                to = routes.before[place]
            elif at_s < routes.held_s[place]:
                to += replicas
            more = events[slot, routes.partitions[place]]
            there[slot, to] += more
            if to < replicas:
                free_s[to] = max(free_s[to], at_s) + more / service_rate[to]
    return there, free_s


@compiled
def _first(there: Floats, service_rate: Floats, grid: TimeGrid) -> _First:
    """Serve what waits. there: as from `_routed`."""
    replicas, past = len(service_rate), len(there)
    free_s, late, lost = np.zeros(replicas), np.zeros(replicas), np.zeros(replicas)
    for slot in range(past):
        due_s = (slot - past) * grid.slot_s + grid.begin_s + grid.target_s
        for replica in range(replicas):
            free_s[replica], more = _serve(
                free_s[replica], 0.0, there[slot, replica], due_s, service_rate[replica], grid.until_s
            )
            late[replica] += more
            if due_s <= grid.saved_s:
                lost[replica] += more
    return _First(free_s, late, lost)


@compiled
def _served(
    routes: _Routes, there: Floats, coming: Floats, first: _First, service_rate: Floats, grid: TimeGrid
) -> tuple[Floats, Floats]:
    """Return the late events of each replica, and without variance those that cannot be saved.

    there, coming: as from `_routed`.
    """
    replicas = len(service_rate)
    late, lost = first.late.copy(), first.lost.copy()
    for replica in range(replicas):
        rate, pause_s, free_s = service_rate[replica], routes.pause_s[replica], first.free_s[replica]
        released = False  # what moved is there after the pause, in front of what arrives later
        moved, held = there[:, replicas + replica], coming[:, replicas + replica]
        peak = 0.0
        for slot in range(len(coming)):
            at_s = slot * grid.slot_s + grid.begin_s
            due_s = at_s + grid.target_s
            if not released and at_s >= pause_s:
                released = True
                if pause_s > 0.0:
                    free_s, more_late, more_lost = _release(free_s, pause_s, moved, held, rate, grid)
                    late[replica] += more_late
                    lost[replica] += more_lost
            free_s, more = _serve(free_s, at_s, coming[slot, replica], due_s, rate, grid.until_s)
            late[replica] += more
            if due_s <= grid.saved_s:
                lost[replica] += more
            peak = max(peak, (free_s - at_s) * rate)
        if not released:
            free_s, more_late, more_lost = _release(free_s, pause_s, moved, held, rate, grid)
            late[replica] += more_late
            lost[replica] += more_lost
            peak = max(peak, (free_s - pause_s) * rate)
        if grid.extrapolate:
            late[replica] += _late_after_grid(free_s, coming, replica, rate, grid)
        if routes.spread[replica] > 0.0:
            sigma = sqrt(routes.spread[replica])
            room = rate * grid.target_s - peak
            late[replica] += _excess(room / sigma) * sigma - max(0.0, -room)
    return late, lost


@compiled
def _late_after_grid(free_s: float, coming: Floats, replica: int, rate: float, grid: TimeGrid) -> float:
    """Return how many events will be late for what is left of those that are looked at."""
    end_s = len(coming) * grid.slot_s
    behind_s = free_s - end_s - grid.target_s
    if behind_s <= 0.0:
        return 0.0
    first = max(0, len(coming) - grid.tail_slots)
    events = float(coming[first:, replica].sum() + coming[first:, len(coming[0]) // 2 + replica].sum())
    each_s = events / ((len(coming) - first) * grid.slot_s)
    return each_s * behind_s / max(IDLE, 1.0 - each_s / rate)


@compiled
def _serve(free_s: float, at_s: float, events: float, due_s: float, rate: float, until_s: float) -> tuple[float, float]:
    """Serve events that arrive at `at_s`; return when the replica is free again, and how many are late by `until_s`."""
    if events <= 0.0:
        return free_s, 0.0
    begun_s = max(free_s, at_s)
    done_s = begun_s + events / rate
    late_s = done_s - due_s if done_s <= until_s else until_s - max(begun_s, due_s)
    return done_s, min(events, max(0.0, late_s * rate))


@compiled
def _release(
    free_s: float, at_s: float, moved: Floats, held: Floats, rate: float, grid: TimeGrid
) -> tuple[float, float, float]:
    """Serve what waited for the end of a handover, oldest first; return when all is done, and as `_served` does."""
    late, lost = 0.0, 0.0
    past = len(moved)
    for slot in range(-past, len(held)):
        slot_s = slot * grid.slot_s + grid.begin_s
        events, came_s = (moved[past + slot], at_s) if slot < 0 else (held[slot], max(at_s, slot_s))
        free_s, more = _serve(free_s, came_s, events, slot_s + grid.target_s, rate, grid.until_s)
        late += more
        if slot_s + grid.target_s <= grid.saved_s:
            lost += more
    return free_s, late, lost


@compiled
def _excess(z: float) -> float:
    """Return E[(X − z)⁺] of a standard normal X."""
    return exp(-0.5 * z * z) / sqrt(2.0 * pi) - z * 0.5 * (1.0 - erf(z / sqrt(2.0)))
