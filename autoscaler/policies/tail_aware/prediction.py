"""How many events would be late if a plan were carried out now, and what it would cost."""

from functools import lru_cache
from math import inf
from typing import Final

import numpy as np

from autoscaler.policies.tail_aware.queues import (
    NEGLIGIBLE,
    Events,
    PlanExecution,
    TimeGrid,
    late_by_scenario,
    late_of_change,
    mean_late,
    plan_execution,
)
from autoscaler.policies.tail_aware.situation import Candidate, Floats, Proposal, Situation

ROUNDING: Final = 1e-3
"""Relative; the capacity is not known better."""
STUCK: Final = 1e9
"""Weight of a partition whose handover is under way: to move it again would restart its pause."""


def predicted(now: Situation, plan: Proposal) -> Candidate:
    """Return the plan with the events that would be late, and what it would cost."""
    owners, replicas = plan.owners, plan.replicas
    moves = owners != now.owners
    late = late_under(now, plan)
    coming = sum(one >= len(now.rates) for one in replicas)
    again = float(np.count_nonzero(moves & (now.in_handover_s > 0))) * STUCK
    cost = (
        len(replicas) * now.paid_s + coming * now.start_price_s + now.late_price_s * late * now.scarcity(late) + again
    )
    cost += now.move_price_s * np.count_nonzero(moves) + NEGLIGIBLE * float(now.sizes[moves].sum())
    return Candidate(owners, replicas, late, _lasts(now, plan), int(np.count_nonzero(moves)), float(cost))


def late_under(now: Situation, plan: Proposal) -> float:
    """Return how many events would be late, of those that wait and those that are looked ahead to.

    Only replicas are looked at that something changes for; the others do as they would if all stayed as it is.
    """
    staying, their_rates = _staying(now)
    everything = now.stops_all and not np.array_equal(plan.owners, now.owners)
    late = late_of_change(staying, their_rates, everything, now.owners, _all(now), _execution(now, plan), _grid(now))
    return float(mean_late(late, now.chances, now.surprise_chances))


@lru_cache(maxsize=1)
def _staying(now: Situation) -> tuple[Floats, Floats]:
    execution = _execution(now, Proposal(now.owners, tuple(range(len(now.rates)))))
    late = late_by_scenario(_all(now), np.arange(len(now.owners)), execution, _grid(now))
    return late, execution.service_rate


def late_for_certain(now: Situation, chosen: Proposal, arrived: Floats) -> Floats:
    """Return how many of the events that wait and arrived in the last interval will be late at each replica.

    Under `chosen`; arrived: all events of that interval, shape (slots, partitions).
    """
    before = now.waiting.copy()
    before[-len(arrived) :] = 0.0
    with_them = _late_by_replica(now, chosen, now.waiting, arrived[:0], inf)
    return np.maximum(0.0, with_them - _late_by_replica(now, chosen, before, arrived[:0], inf))


def late_until(then: Situation, chosen: Proposal, arrived: Floats) -> Floats:
    """Return how many events were late at each replica by the end of the interval that began `then`.

    Under what was chosen then; arrived: events by slot and partition of that interval.
    """
    return _late_by_replica(then, chosen, then.waiting, arrived, len(arrived) * then.slot_s)


def unforeseen(
    before: tuple[Situation, Proposal, Floats], then: Situation, chosen: Proposal, arrived: Floats
) -> Floats:
    """Return the late events that were already queued and that the previous tick's prediction did not account for.

    before: the tick before `then`, its plan, and the arrivals in between. Its replay gives the predicted queue.
    """
    staying = Proposal(then.owners, tuple(range(len(then.rates))))
    waited = _late_by_replica(then, staying, then.waiting, arrived[:0], inf).sum()
    if waited <= 0:
        return np.zeros(len(then.rates_under(chosen.replicas)))
    earlier, its_choice, came = before
    after = _late_by_replica(earlier, its_choice, earlier.waiting, came, inf).sum()
    foreseen = after - late_until(earlier, its_choice, came).sum()
    late = _late_by_replica(then, chosen, then.waiting, arrived[:0], len(arrived) * then.slot_s)
    return np.asarray(max(0.0, 1 - foreseen / waited) * late)


def late_of(then: Situation, chosen: Proposal, arrived: Floats) -> float:
    """Return how many events that have arrived since `then` will be late, or make others late, under what was chosen.

    arrived: events by slot and partition, the first slot begins there.
    """
    if not arrived.any():
        return 0.0
    with_them = _late_by_replica(then, chosen, then.waiting, arrived, inf).sum()
    return float(with_them) - _late_of_waiting(then, chosen)


@lru_cache(maxsize=1)
def _late_of_waiting(then: Situation, chosen: Proposal) -> float:
    nothing = np.zeros((0, len(then.owners)))
    return float(_late_by_replica(then, chosen, then.waiting, nothing, inf).sum())


def late_already(then: Situation, chosen: Proposal, arrived: Floats) -> Floats:
    """Return how many of the events that arrived after `then` were served since, too late, by each replica.

    Under what was chosen then; arrived: events of the interval that begins there, by slot and partition.
    """
    with_them = late_until(then, chosen, arrived)
    until_s = len(arrived) * then.slot_s
    return np.maximum(0.0, with_them - _late_by_replica(then, chosen, then.waiting, arrived[:0], until_s))


def _lasts(now: Situation, plan: Proposal) -> bool:
    rates = now.rates_up_to(max(plan.replicas, default=-1))
    load = np.bincount(plan.owners, now.sizes, minlength=len(rates))
    shared = np.bincount(plan.owners, minlength=len(rates)) > 1
    return bool((load <= now.capacity * rates / now.typical_rate * (1 + ROUNDING))[shared].all())


def _late_by_replica(now: Situation, plan: Proposal, waiting: Floats, came: Floats, until_s: float) -> Floats:
    """Return the late events of each replica by `until_s`, of those that wait and those that came, by slot."""
    events = Events(waiting, came[None], np.zeros((0, *came.shape)), 0 * now.variance)
    grid = _grid(now)._replace(until_s=until_s, saved_s=inf, extrapolate=False)
    return np.asarray(late_by_scenario(events, np.arange(len(plan.owners)), _execution(now, plan), grid)[0])


def _all(now: Situation) -> Events:
    return Events(now.waiting, now.expected, now.surprises, now.variance)


def _grid(now: Situation) -> TimeGrid:
    return TimeGrid(now.slot_s, now.begin_s, now.target_s, inf, now.saved_s, now.tail_slots, now.start_s > 0)


def _execution(now: Situation, plan: Proposal) -> PlanExecution:
    there = now.serving, now.owners, now.in_handover_s, now.starting_s
    each = plan_execution(*there, plan.owners, now.start_s, now.pause_s, now.stops_all)
    return PlanExecution(now.serving, plan.owners, *each, now.rates_under(plan.replicas))
