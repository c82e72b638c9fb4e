"""Guards that limit the number of replicas and the times of changes."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Final

import numpy as np
from numpy.typing import NDArray

from autoscaler.model import Action, Decision, GroupObservation, Plan, Replica
from autoscaler.packing.bins import Bin, Item
from autoscaler.packing.least_loaded import spread
from autoscaler.packing.owners import fresh_names, name_bins
from autoscaler.policies.planning import (
    WantedCounts,
    busiest,
    change,
    describe_unowned,
    items_of,
    no_change,
    number,
    plan_for,
    plan_for_count,
)
from autoscaler.policies.settings import REPLICA_PREFIX
from autoscaler.ports import PolicyWrapper

WORTH_MOVING: Final = 0.1
"""At the maximum count, partitions move only if the busiest replica's load falls by this share: an overloaded group
must not hand over partitions each second for almost no gain."""


class CountsOnly(PolicyWrapper):
    """Removes the assignment from decisions, for a group that places its partitions itself."""

    def decide(self, observation: GroupObservation) -> Decision:
        """Return the inner decision without owners. REASSIGN becomes NO_CHANGE."""
        wanted = self.policy.decide(observation)
        if wanted.action is Action.REASSIGN:
            why = f"{wanted.reason}; vetoed: the group places its partitions itself"
            return no_change(observation, why, counts_only=True)
        return replace(wanted, plan=Plan(wanted.plan.replicas, None))


@dataclass(eq=False, kw_only=True)
class Bounds(PolicyWrapper):
    """Limits the count to [minimum, maximum] and to the number of partitions: further replicas would be idle."""

    minimum: int = 1
    maximum: int = 0
    """Maximum count; 0: the number of partitions."""
    replica_prefix: str = REPLICA_PREFIX

    def decide(self, observation: GroupObservation) -> Decision:
        """Return the inner decision, or the nearest one within the limits."""
        wanted = self.policy.decide(observation)
        count, limit, rail = self._limit(wanted.plan.count, len(observation.partitions))
        if count == wanted.plan.count:
            return wanted
        why = f"{wanted.reason}; {limit}"
        plan = resize_plan(observation, wanted.plan, count, self.replica_prefix)
        is_same_count = count == observation.requested_replicas and not describe_unowned(observation)
        if plan.assignment is not None and is_same_count:
            if wanted.action is Action.DOWN:
                return limited(no_change(observation, f"{why}: no change at {count}"), wanted, rail)
            busy, relieved = (busiest(observation, owners) for owners in (observation.assignment, plan.assignment))
            if relieved >= busy * (1 - WORTH_MOVING):
                why = f"{why}: no change at {count}, no placement relieves the busiest replica enough"
                return limited(no_change(observation, why), wanted, rail)
        return limited(change(observation, plan, why), wanted, rail)

    def _limit(self, count: int, partitions: int) -> tuple[int, str, str]:
        if 0 < self.maximum < min(count, partitions):
            return self.maximum, f"maximum is {self.maximum}", "max"
        if count > partitions:
            return partitions, f"limited to {partitions}, the number of partitions", "partitions"
        if count < min(self.minimum, partitions):
            return min(self.minimum, partitions), f"minimum is {self.minimum}", "min"
        return count, "", ""


@dataclass(eq=False, kw_only=True)
class StabiliseDown(PolicyWrapper):
    """Scales down only to the maximum count that was wanted within a window, as Kubernetes' HPA does.

    The group's count at the first decision is included. A plan with owners is not changed. Such a plan waits until no
    larger count was wanted within `window_s`.
    """

    window_s: float
    replica_prefix: str = REPLICA_PREFIX

    def __post_init__(self) -> None:
        self._wanted_counts = WantedCounts(self.window_s)

    def decide(self, observation: GroupObservation) -> Decision:
        """Return the inner decision, a smaller change, or no change while the window contains larger counts."""
        wanted = self.policy.decide(observation)
        now, count = observation.requested_replicas, wanted.plan.count
        _, most = self._wanted_counts.note(observation, count)
        if wanted.action is not Action.DOWN or most == count:
            return wanted
        why = f"the maximum wanted within {number(self.window_s)} s is {most}"
        if most >= now or wanted.plan.assignment is not None:
            return veto(observation, wanted, why, "stabilisation")
        plan = resize_plan(observation, wanted.plan, most, self.replica_prefix)
        return limited(change(observation, plan, f"{wanted.reason}; {why}"), wanted, "stabilisation")


@dataclass(eq=False, kw_only=True)
class WaitForReplicas(PolicyWrapper):
    """Vetoes DOWN and REASSIGN while a requested replica is not ready or is silent. UP passes, because it is urgent.

    limit_s: longest time for which one replica may cause the veto, seconds.
    """

    limit_s: float = 30.0
    _awaited_since_s: dict[str, float] = field(default_factory=dict)

    def decide(self, observation: GroupObservation) -> Decision:
        """Return the inner decision, or no change with the names of the awaited replicas."""
        wanted = self.policy.decide(observation)
        self._awaited_since_s = {
            replica.name: self._awaited_since_s.get(replica.name, observation.at_s)
            for replica in observation.replicas
            if not replica.surely_ready
        }
        awaited = [name for name, at_s in self._awaited_since_s.items() if observation.at_s - at_s < self.limit_s]
        if not awaited or wanted.action in (Action.UP, Action.NO_CHANGE):
            return wanted
        starting = {replica.name for replica in observation.replicas if not replica.ready}
        why = "not ready yet" if starting.intersection(awaited) else "silent"
        return veto(observation, wanted, f"{', '.join(awaited)} {why}")


@dataclass(eq=False, kw_only=True)
class CoolDown(PolicyWrapper):
    """Vetoes UP for `up_s` and DOWN for `down_s` after any scaling. A reassignment is no scaling."""

    up_s: float = 0.0
    down_s: float = 0.0
    _scaled_at_s: float = -math.inf

    def decide(self, observation: GroupObservation) -> Decision:
        """Return the inner decision, or no change while cooling down."""
        wanted = self.policy.decide(observation)
        if wanted.action not in (Action.UP, Action.DOWN):
            return wanted
        wait_s = self.up_s if wanted.action is Action.UP else self.down_s
        since_s = observation.at_s - self._scaled_at_s
        if since_s < wait_s:
            return veto(
                observation,
                wanted,
                f"cooling down, {number(since_s)} of {number(wait_s)} s",
                f"cool_down_{wanted.action}",
            )
        self._scaled_at_s = observation.at_s
        return wanted


def veto(observation: GroupObservation, wanted: Decision, why: str, rail: str = "") -> Decision:
    """Return the decision to keep the plan in force instead of `wanted`, with both reasons. rail: see `limited`."""
    kept = no_change(observation, f"{wanted.reason}; vetoed: {why}", counts_only=wanted.plan.assignment is None)
    return limited(replace(kept, alternatives=wanted.alternatives), wanted, rail)


def limited(decision: Decision, wanted: Decision, rail: str) -> Decision:
    """Return `decision`, which replaces what was wanted, with the name of the limit; empty: the limit is no rail."""
    rails = (*wanted.rails, rail) if rail else wanted.rails
    uncapped = wanted.uncapped or (wanted.plan.count if rail else 0)
    return replace(decision, fault=wanted.fault, comparison=wanted.comparison, rails=rails, uncapped=uncapped)


def resize_plan(observation: GroupObservation, plan: Plan, count: int, prefix: str) -> Plan:
    """Return a plan with `count` replicas instead of `plan`. If `plan` has owners, the load is spread evenly.

    Each replica gets load in proportion to its μ. If replicas must leave, ready ones stay first, then the fastest.
    """
    if plan.assignment is None:
        return plan_for_count(observation, count, prefix)
    if all(replica.service_rate is None for replica in observation.replicas):
        return plan_for(observation, spread(items_of(observation), count), prefix)
    return _spread_by_rate(observation, count, prefix)


def _spread_by_rate(observation: GroupObservation, count: int, prefix: str) -> Plan:
    """Return the plan in which all replicas need about the same time for one second of their load."""
    known = {*observation.replica_names, *observation.assignment.values()}
    more = max(0, count - observation.requested_replicas)
    new = (Replica(name, ready=False) for name in islice(fresh_names(prefix, known), more))
    replicas = [*observation.replicas, *new]
    rate_of = {replica.name: replica.service_rate or observation.service_rate for replica in replicas}
    best_first = sorted(replicas, key=lambda r: (not r.surely_ready, -rate_of[r.name]))
    rates = [rate_of[replica.name] for replica in best_first[:count]]
    bins = _fill(items_of(observation), np.array(rates))
    owners: dict[int, str] = {}
    staying: set[str] = set()
    for rate in dict.fromkeys(rates):  # equally fast replicas are interchangeable: each keeps what it can
        alike = [bin_ for bin_, its_rate in zip(bins, rates, strict=True) if its_rate == rate]
        equally_fast = [replica.name for replica in best_first if rate_of[replica.name] == rate]
        names = name_bins(alike, observation.assignment, equally_fast, prefix)
        staying.update(names)
        owners |= {item.partition: name for bin_, name in zip(alike, names, strict=True) for item in bin_.items}
    return Plan(tuple(replica.name for replica in replicas if replica.name in staying), dict(sorted(owners.items())))


def _fill(items: Sequence[Item], rates: NDArray[np.float64]) -> list[Bin]:
    """Put each item, largest λ first, where λ/μ is least afterwards. Ties by lag/μ, then number of items/μ."""
    totals = np.zeros((3, len(rates)))
    contents: list[list[Item]] = [[] for _ in rates]
    for item in sorted(items, key=lambda item: (-item.arrival_rate, -item.lag, item.partition)):
        adds = np.array([item.arrival_rate, item.lag, 1.0])
        places = np.arange(len(rates))
        for after in (totals + adds[:, None]) / rates:
            places = places[after[places] == after[places].min()]
        contents[places[0]].append(item)
        totals[:, places[0]] += adds
    return [Bin(tuple(content)) for content in contents]
