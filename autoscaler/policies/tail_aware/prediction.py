"""How many events would be late if a plan were carried out now: what waits already, and what is expected to arrive.

A replica serves at μ what reaches it, oldest first. The events of one slot arrive together at its start (the worst they
can do), each is due W later, and those that a full queue pushes beyond that are late (Lindley's recursion on slots).
"""

from math import erf, exp, pi, sqrt

import numpy as np
from numpy.typing import NDArray

from autoscaler.jit import compiled

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


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
) -> Floats:
    """Return the expected number of late events of each replica, shape (replicas,).

    waiting: events that wait, by age and partition, shape (slots, partitions); row i arrived (slots − i) slots ago.
    expected: events that will arrive, by slot and partition, shape (slots, partitions).
    variance: of the sum over slots of `expected`, by partition.
    before, owners: replica of each partition now and under the plan, −1 for none. switch_s: until then the one before
    serves what arrives, for its heir has yet to start; 0 where it has not. ready_s: from when the heir serves the
    partition, 0 if it does already; of several that a replica waits for, the last counts. Events are due as before.
    service_rate: μ of each replica.
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
            free_s, more = _serve(free_s, 0.0, kept[replica, slot], (slot - past) * slot_s + target_s, rate)
            late[replica] += more
        # what moved is there after the pause, in front of what arrives later
        released = False
        peak = 0.0
        for slot in range(future):
            at_s = slot * slot_s
            if not released and at_s >= pause_s:
                released = True
                free_s, more = _release(free_s, pause_s, moved[replica], held[replica], slot_s, target_s, rate)
                late[replica] += more
            free_s, more = _serve(free_s, at_s, coming[replica, slot], at_s + target_s, rate)
            late[replica] += more
            peak = max(peak, (free_s - at_s) * rate)
        if not released:
            free_s, more = _release(free_s, pause_s, moved[replica], held[replica], slot_s, target_s, rate)
            late[replica] += more
            peak = max(peak, (free_s - pause_s) * rate)
        if spread[replica] > 0.0:
            sigma = sqrt(spread[replica])
            room = rate * target_s - peak
            late[replica] += _excess(room / sigma) * sigma - max(0.0, -room)
    return late


@compiled
def _serve(free_s: float, at_s: float, events: float, due_s: float, rate: float) -> tuple[float, float]:
    """Serve events that arrive at `at_s`; return when the replica is free again, and how many of them are late."""
    if events <= 0.0:
        return free_s, 0.0
    done_s = max(free_s, at_s) + events / rate
    return done_s, min(events, max(0.0, (done_s - due_s) * rate))


@compiled
def _release(
    free_s: float, at_s: float, moved: Floats, held: Floats, slot_s: float, target_s: float, rate: float
) -> tuple[float, float]:
    """Serve what waited for the end of a handover, oldest first."""
    late = 0.0
    past = len(moved)
    for slot in range(past):
        free_s, more = _serve(free_s, at_s, moved[slot], (slot - past) * slot_s + target_s, rate)
        late += more
    for slot in range(len(held)):
        free_s, more = _serve(free_s, max(at_s, slot * slot_s), held[slot], slot * slot_s + target_s, rate)
        late += more
    return free_s, late


@compiled
def _excess(z: float) -> float:
    """Return E[(X − z)⁺] of a standard normal X."""
    return exp(-0.5 * z * z) / sqrt(2.0 * pi) - z * 0.5 * (1.0 - erf(z / sqrt(2.0)))
