"""How many events would be late if a plan were carried out now: what waits already, and what is expected to arrive.

A replica serves at μ what reaches it, oldest first. The events of one slot arrive together at its start (the worst they
can do), each is due W later, and those that a full queue pushes beyond that are late (Lindley's recursion on slots).
"""

from math import erf, exp, inf, pi, sqrt
from typing import Final

import numpy as np

from autoscaler.jit import compiled
from autoscaler.policies.tail_aware.situation import Candidate, Floats, Ints, Proposal, Situation

HALVINGS: Final = 12
"""In the search for a replica's capacity: to within 1/4096 of μ."""
ROUNDING: Final = 1e-3
"""Relative; the capacity is not known better."""
NEGLIGIBLE: Final = 1e-6
"""Events."""
STUCK: Final = 1e9
"""Weight of a partition whose handover is under way: to move it again would begin its pause anew."""


def predicted(now: Situation, plan: Proposal) -> Candidate:
    """Return the plan with the events that would be late, and what it would cost."""
    owners, replicas = plan.owners, plan.replicas
    moves = owners != now.owners
    late = late_under(now, plan)
    coming = now.price_of([one for one in replicas if one >= len(now.rates)])
    again = float(np.count_nonzero(moves & (now.in_handover_s > 0))) * STUCK
    cost = (
        now.price_of(replicas) * now.paid_s
        + coming * now.start_price_s
        + now.late_price_s * late * now.scarcity(late)
        + again
    )
    cost += now.move_price_s * np.count_nonzero(moves) + NEGLIGIBLE * float(now.sizes[moves].sum())
    return Candidate(
        owners,
        replicas,
        late,
        _lasts(now, plan),
        int(np.count_nonzero(moves)),
        float(cost),
    )


def late_under(now: Situation, plan: Proposal) -> float:
    """Return how many events would be late, of those that wait and those that are looked ahead to."""
    switch_s, ready_s, rates = _carried_out(now, plan)
    return float(
        mean_late(
            now.waiting,
            now.expected,
            now.chances,
            now.surprises,
            now.surprise_chances,
            now.variance,
            now.owners,
            plan.owners,
            switch_s,
            ready_s,
            rates,
            now.slot_s,
            now.target_s,
            now.saved_s,
        )
    )


def late_for_certain(now: Situation, chosen: Proposal, arrived: Floats) -> Floats:
    """Return how many of the events that wait and arrived in the last interval will be late at each replica.

    Under `chosen`; arrived: all events of that interval, shape (slots, partitions).
    """
    before = now.waiting.copy()
    before[-len(arrived) :] = 0.0
    none, nothing = 0 * now.variance, arrived[:0]
    with_them = _late_by_replica(now, chosen, now.waiting, nothing, none, inf)
    return np.maximum(0.0, with_them - _late_by_replica(now, chosen, before, nothing, none, inf))


def late_until(then: Situation, chosen: Proposal, arrived: Floats) -> Floats:
    """Return how many events were late at each replica by the end of the interval that began `then`.

    Under what was chosen then; arrived: events by slot and partition of that interval.
    """
    return _late_by_replica(then, chosen, then.waiting, arrived, 0 * then.variance, len(arrived) * then.slot_s)


def late_of(then: Situation, chosen: Proposal, arrived: Floats) -> float:
    """Return how many events that have arrived since `then` will be late, or make others late, under what was chosen.

    arrived: events by slot and partition, the first slot begins there.
    """
    none = 0 * then.variance
    with_them = _late_by_replica(then, chosen, then.waiting, arrived, none, inf).sum()
    return float(with_them - _late_by_replica(then, chosen, then.waiting, arrived[:0], none, inf).sum())


def late_already(then: Situation, chosen: Proposal, arrived: Floats) -> Floats:
    """Return how many of the events that arrived after `then` were served since, too late, by each replica.

    Under what was chosen then; arrived: events of the interval that begins there, by slot and partition.
    """
    until_s, none = len(arrived) * then.slot_s, 0 * then.variance
    with_them = _late_by_replica(then, chosen, then.waiting, arrived, none, until_s)
    return np.maximum(0.0, with_them - _late_by_replica(then, chosen, then.waiting, arrived[:0], none, until_s))


def capacity_of(row: Floats, service_rate: float, slot_s: float, target_s: float) -> float:
    """Return how many events per interval a replica serves in time where they lie as in `row`.

    row: events by slot, of intervals one after the other, as multiples of what an interval has on average. Between μ·W
    (all at once) and μ·interval (evenly).
    """
    none, zero, first = np.zeros((1, 1)), np.zeros(1), np.zeros(1, np.int64)
    rate = np.array([service_rate])

    def in_time(size: float) -> bool:
        late = late_events(
            none, (row * size)[:, None], zero, first, first, zero, zero, rate, slot_s, target_s, inf, inf
        )
        return float(late[0]) <= NEGLIGIBLE

    low, high = 0.0, service_rate * (len(row) * slot_s) / float(row.sum())
    if in_time(high):
        return high
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if in_time(middle) else (low, middle)
    return max(low, NEGLIGIBLE)


def _lasts(now: Situation, plan: Proposal) -> bool:
    """Tell whether every replica with more than one partition can serve what they bring."""
    rates = now.rates_up_to(max(plan.replicas, default=-1))
    load = np.bincount(plan.owners, now.sizes, minlength=len(rates))
    shared = np.bincount(plan.owners, minlength=len(rates)) > 1
    return bool((load <= now.capacity * rates / now.typical_rate * (1 + ROUNDING))[shared].all())


def _late_by_replica(
    now: Situation, plan: Proposal, waiting: Floats, expected: Floats, variance: Floats, until_s: float
) -> Floats:
    switch_s, ready_s, rates = _carried_out(now, plan)
    return late_events(
        waiting,
        expected,
        variance,
        now.owners,
        plan.owners,
        switch_s,
        ready_s,
        rates,
        now.slot_s,
        now.target_s,
        until_s,
        inf,
    )


def _carried_out(now: Situation, plan: Proposal) -> tuple[Floats, Floats, Floats]:
    """Return switch_s and ready_s of each partition, and μ of each replica, as `late_events` takes them."""
    switch_s = np.where(plan.owners >= len(now.rates), now.start_s, 0.0)
    moves = plan.owners != now.owners
    ready_s = np.where(moves, switch_s + now.pause_s, now.in_handover_s)
    if now.stops_all and moves.any():
        ready_s = np.maximum(ready_s, now.pause_s)
    return switch_s, ready_s, now.rates_under(plan.replicas)


@compiled
def mean_late(
    waiting: Floats,
    expected: Floats,
    chances: Floats,
    surprises: Floats,
    surprise_chances: Floats,
    variance: Floats,
    before: Ints,
    owners: Ints,
    switch_s: Floats,
    ready_s: Floats,
    service_rate: Floats,
    slot_s: float,
    target_s: float,
    saved_s: float,
) -> float:
    """Return the mean of the late events over all that may come.

    expected, surprises: events that will arrive, each in its way, shape (ways, slots, partitions). What comes by
    surprise is seen at the next tick: an event that is due after `saved_s` can still be saved then.
    """
    late, usual, none = 0.0, 0.0, np.zeros(len(variance))
    for way in range(len(expected)):
        late += (
            chances[way]
            * late_events(
                waiting,
                expected[way],
                variance,
                before,
                owners,
                switch_s,
                ready_s,
                service_rate,
                slot_s,
                target_s,
                inf,
                inf,
            ).sum()
        )
        if len(surprises):
            usual += (
                chances[way]
                * late_events(
                    waiting,
                    expected[way],
                    none,
                    before,
                    owners,
                    switch_s,
                    ready_s,
                    service_rate,
                    slot_s,
                    target_s,
                    inf,
                    saved_s,
                ).sum()
            )
    for way in range(len(surprises)):
        more = late_events(
            waiting,
            surprises[way],
            none,
            before,
            owners,
            switch_s,
            ready_s,
            service_rate,
            slot_s,
            target_s,
            inf,
            saved_s,
        ).sum()
        late += surprise_chances[way] * max(0.0, more - usual)
    return late


@compiled
def late_events(
    waiting: Floats,
    expected: Floats,
    variance: Floats,
    before: Ints,
    owners: Ints,
    switch_s: Floats,
    ready_s: Floats,
    service_rate: Floats,
    slot_s: float,
    target_s: float,
    until_s: float,
    saved_s: float,
) -> Floats:
    """Return the expected number of late events of each replica, shape (replicas,).

    waiting: events that wait, by age and partition, shape (slots, partitions); row i arrived (slots − i) slots ago.
    expected: events that will arrive, by slot and partition, shape (slots, partitions).
    variance: of the sum over slots of `expected`, by partition.
    before, owners: replica of each partition now and under the plan, −1 for none. switch_s: until then the one before
    serves what arrives, for its successor has yet to start; 0 where it has not. ready_s: from when the successor serves
    the partition, 0 if it does already; of several that a replica waits for, the last counts. Events are due as before.
    service_rate: μ of each replica. until_s: events that are served later are not counted,
    nor those that are due after saved_s.
    """
    replicas = len(service_rate)
    past, partitions = waiting.shape
    future = expected.shape[0]
    late = np.zeros(replicas)
    kept = np.zeros((replicas, past))
    moved = np.zeros((replicas, past))
    coming = np.zeros((replicas, future))
    held = np.zeros((replicas, future))
    spread = np.zeros(replicas)
    pause = np.zeros(replicas)
    for partition in range(partitions):
        if owners[partition] >= 0:
            pause[owners[partition]] = max(pause[owners[partition]], ready_s[partition])
    for partition in range(partitions):
        replica = owners[partition]
        if replica < 0:
            continue
        stays = ready_s[partition] <= 0.0
        pause_s = pause[replica]
        spread[replica] += variance[partition]
        late_start = switch_s[partition] > 0.0 and before[partition] >= 0
        for slot in range(past):
            if late_start:
                kept[before[partition], slot] += waiting[slot, partition]
            elif stays:
                kept[replica, slot] += waiting[slot, partition]
            else:
                moved[replica, slot] += waiting[slot, partition]
        for slot in range(future):
            if late_start and slot * slot_s < switch_s[partition]:
                coming[before[partition], slot] += expected[slot, partition]
            elif stays or slot * slot_s >= pause_s:
                coming[replica, slot] += expected[slot, partition]
            else:
                held[replica, slot] += expected[slot, partition]
    for replica in range(replicas):
        rate = service_rate[replica]
        pause_s = pause[replica]
        free_s = 0.0
        for slot in range(past):
            free_s, more = _serve(
                free_s, 0.0, kept[replica, slot], (slot - past) * slot_s + target_s, rate, until_s, saved_s
            )
            late[replica] += more
        # what moved is there after the pause, in front of what arrives later
        released = False
        peak = 0.0
        for slot in range(future):
            at_s = slot * slot_s
            if not released and at_s >= pause_s:
                released = True
                free_s, more = _release(
                    free_s, pause_s, moved[replica], held[replica], slot_s, target_s, rate, until_s, saved_s
                )
                late[replica] += more
            free_s, more = _serve(free_s, at_s, coming[replica, slot], at_s + target_s, rate, until_s, saved_s)
            late[replica] += more
            peak = max(peak, (free_s - at_s) * rate)
        if not released:
            free_s, more = _release(
                free_s, pause_s, moved[replica], held[replica], slot_s, target_s, rate, until_s, saved_s
            )
            late[replica] += more
            peak = max(peak, (free_s - pause_s) * rate)
        if spread[replica] > 0.0:
            sigma = sqrt(spread[replica])
            room = rate * target_s - peak
            late[replica] += _excess(room / sigma) * sigma - max(0.0, -room)
    return late


@compiled
def _serve(
    free_s: float, at_s: float, events: float, due_s: float, rate: float, until_s: float, saved_s: float
) -> tuple[float, float]:
    """Serve events that arrive at `at_s`; return when the replica is free again, and how many are late by `until_s`."""
    if events <= 0.0:
        return free_s, 0.0
    done_s = max(free_s, at_s) + events / rate
    if due_s > saved_s:
        return done_s, 0.0
    return done_s, min(events, max(0.0, (min(done_s, until_s) - due_s) * rate))


@compiled
def _release(
    free_s: float,
    at_s: float,
    moved: Floats,
    held: Floats,
    slot_s: float,
    target_s: float,
    rate: float,
    until_s: float,
    saved_s: float,
) -> tuple[float, float]:
    """Serve what waited for the end of a handover, oldest first."""
    late = 0.0
    past = len(moved)
    for slot in range(past):
        free_s, more = _serve(free_s, at_s, moved[slot], (slot - past) * slot_s + target_s, rate, until_s, saved_s)
        late += more
    for slot in range(len(held)):
        free_s, more = _serve(
            free_s, max(at_s, slot * slot_s), held[slot], slot * slot_s + target_s, rate, until_s, saved_s
        )
        late += more
    return free_s, late


@compiled
def _excess(z: float) -> float:
    """Return E[(X − z)⁺] of a standard normal X."""
    return exp(-0.5 * z * z) / sqrt(2.0 * pi) - z * 0.5 * (1.0 - erf(z / sqrt(2.0)))
