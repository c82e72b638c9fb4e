"""What guards share: a veto that says why, a plan of another size."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from autoscaler.model import Decision, GroupObservation, Plan, Replica
from autoscaler.packing.bins import Bin, Item
from autoscaler.packing.least_loaded import spread
from autoscaler.packing.owners import fresh_names, name_bins
from autoscaler.policies.planning import counted_plan, hold, items_of, plan_for


def veto(observation: GroupObservation, wanted: Decision, why: str) -> Decision:
    """Return a hold in place of `wanted`, with the reasons of both."""
    held = hold(observation, f"{wanted.reason}; vetoed: {why}", counts_only=wanted.plan.assignment is None)
    return replace(held, alternatives=wanted.alternatives)


def resized(observation: GroupObservation, plan: Plan, count: int, prefix: str) -> Plan:
    """Return a plan with `count` replicas in place of `plan`: partitions spread evenly, or a count only as before.

    Evenly: each replica gets work by its share of μ; where not all can stay, those that are ready and quick do.
    """
    if plan.assignment is None:
        return counted_plan(observation, count, prefix)
    if all(one.service_rate is None for one in observation.replicas):
        return plan_for(observation, spread(items_of(observation), count), prefix)
    return _spread_by_rate(observation, count, prefix)


def _spread_by_rate(observation: GroupObservation, count: int, prefix: str) -> Plan:
    """Return the plan in which the time that each replica needs for a second of its load is as equal as it can be."""
    known = {*observation.replica_names, *observation.assignment.values()}
    more = max(0, count - observation.requested_replicas)
    new = (Replica(name, ready=False) for name in islice(fresh_names(prefix, known), more))
    replicas = [*observation.replicas, *new]
    rate_of = {one.name: one.service_rate or observation.service_rate for one in replicas}
    best_first = sorted(replicas, key=lambda one: (not one.surely_ready, -rate_of[one.name]))
    rates = [rate_of[one.name] for one in best_first[:count]]
    bins = _filled(items_of(observation), np.array(rates))
    owners: dict[int, str] = {}
    staying: set[str] = set()
    for rate in dict.fromkeys(rates):  # who is equally quick may have what it has now
        alike = [one for one, its_rate in zip(bins, rates, strict=True) if its_rate == rate]
        names = name_bins(
            alike, observation.assignment, [one.name for one in best_first if rate_of[one.name] == rate], prefix
        )
        staying.update(names)
        owners |= {item.partition: name for one, name in zip(alike, names, strict=True) for item in one.items}
    return Plan(tuple(one.name for one in replicas if one.name in staying), dict(sorted(owners.items())))


def _filled(items: Sequence[Item], rates: NDArray[np.float64]) -> list[Bin]:
    """Put each item, the largest λ first, where λ/μ is least after that; of equal bins by lag/μ, then number/μ."""
    held = np.zeros((3, len(rates)))
    contents: list[list[Item]] = [[] for _ in rates]
    for item in sorted(items, key=lambda one: (-one.arrival_rate, -one.lag, one.partition)):
        adds = np.array([item.arrival_rate, item.lag, 1.0])
        places = np.arange(len(rates))
        for after in (held + adds[:, None]) / rates:
            places = places[after[places] == after[places].min()]
        contents[places[0]].append(item)
        held[:, places[0]] += adds
    return [Bin(tuple(content)) for content in contents]
